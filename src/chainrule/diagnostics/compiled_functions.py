"""Compiled functions: why one was traced again, and why NumPy runs it and not machine code."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from chainrule.autograd.intercept import INTERCEPTOR
from chainrule.autograd.location import Location, user_function
from chainrule.autograd.modes import MODES
from chainrule.compiler.api import Compiled


def explained(compiled: Compiled) -> str:
    """Return a paragraph about a compiled function."""
    name = getattr(compiled.function, "__qualname__", repr(compiled.function))
    where = _defined(compiled.function)
    title = f"The compiled function {name}" + (f" ({where})" if where else "")
    modes = MODES.get()
    if INTERCEPTOR.get() is not None or (modes is not None and modes.special):
        return (
            f"{title} runs eagerly here, operation by operation: within vmap, another compiled "
            "function, detect_anomaly(), explain() or saved_tensors_hooks, there is nothing to "
            "compile. Call it outside of them to run its program."
        )
    if compiled._last is None:
        return (
            f"{title} has not been called yet: it is traced at its first call, for the shapes and "
            "dtypes of that call."
        )
    return f"{title} {_traces(compiled)} {_machine(compiled)}"


def _defined(function: Any) -> Location | None:
    code = getattr(user_function(function), "__code__", None)
    return None if code is None else Location(code.co_filename, code.co_firstlineno, code.co_name)


def _traces(compiled: Compiled) -> str:
    found = compiled.signatures
    if compiled._single_use:
        return (
            f"has been traced {compiled._single_use + len(found)} times: the last call's program "
            "serves no other call, since the function keeps a tensor, changes a number or list "
            "that it finds by name, or reads a clock or a file. Return tensors instead, and count "
            "and read outside."
        )
    if len(found) < 2:
        return "has been traced once, and its program serves all calls so far: all is well."
    changes = "; ".join(found[-1].changes(found[-2])[:3])
    changed = [text for key, text in found[-1].items() if found[-2].get(key) != text]
    mend = "Each new shape or dtype takes a trace: pad to few shapes, or keep the dtype."
    if any(text[:1] in "'\"(" or text in ("True", "False", "None") for text in changed):
        mend = "Each value of such an argument takes a trace, which is right if they are few."
    if any(text.lstrip("-").replace(".", "").isdigit() for text in changed):
        mend = (
            "A program serves all values of a number that is used in arithmetic alone; where the "
            "value is read, as by int() or an index, pass a tensor, or few values."
        )
    elif any(text.startswith("any ") for text in found[-1].values()):
        mend = "This program serves all values of the number: all is well."
    return f"has been traced {len(found)} times, the last time because {changes}. {mend}"


def _machine(compiled: Compiled) -> str:
    if compiled.source_native:
        text = "It runs as machine code"
        remarks = compiled.signatures[-1].remarks if compiled.signatures else ()
        return f"{text}, but {remarks[0].text}" if remarks else f"{text}."
    begin = "It runs as NumPy calls and not as machine code, since"
    if compiled.backend == "numpy":
        return f'{begin} it was compiled with backend="numpy": leave that out.'
    if find_spec("llvmlite") is None:
        return f"{begin} llvmlite is not installed: pip install 'chainrule[native]'."
    remarks = compiled._built().signature.remarks
    if remarks:
        return f"{begin} of this: {remarks[0].text}"
    return (
        f"{begin} its loops do too little work, for these shapes, to be worth compiling; NumPy's "
        'calls are as fast. compile(f, backend="native") compiles them all the same.'
    )
