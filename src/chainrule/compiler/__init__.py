"""Compiler: traces a function for each signature, and runs an optimised program in its place.

`tracing` runs the function once on symbols, with the eager engine itself. The trace becomes a
program (`ir`), which `passes` optimise and `codegen` or `native` turn into NumPy source or machine
code. `build` combines the parts of a call, and `guards` check that later calls have the same
signature.
"""

from chainrule.compiler.api import Compiled as Compiled
from chainrule.compiler.api import compile as compile
from chainrule.compiler.control_flow import trace as _loops
from chainrule.compiler.export import export as export
from chainrule.compiler.profiling import profile as profile
from chainrule.compiler.tracing.namespace import SYMBOL_XP as _SYMBOL_XP
from chainrule.compiler.tracing.numpy_protocols import install as _install

__all__ = ["Compiled", "compile", "export", "profile"]

_SYMBOL_XP.loops = _loops
_install()
