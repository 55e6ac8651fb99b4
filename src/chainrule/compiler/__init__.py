"""`compile`: a function becomes a program of NumPy calls, for each signature it is called with.

`trace` runs the function once on `symbol`s, with the eager engine itself; `program` is what it saw;
`passes` and `algebra` make less of it; `memory` and `numpy_source` write it as NumPy. `builder`
puts a call together, which `entry` guards.
"""

from chainrule.compiler.api import Compiled as Compiled
from chainrule.compiler.api import compile as compile
from chainrule.compiler.export import export as export
from chainrule.compiler.profiling import profile as profile
from chainrule.compiler.tracing import namespace as namespace  # symbols get theirs

__all__ = ["Compiled", "compile", "export", "profile"]
