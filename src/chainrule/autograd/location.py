"""Lines of user code: kept as code object and instruction, made into text on request."""

from __future__ import annotations

import ast
import bisect
import functools
import linecache
import os
import re
import sys
import warnings
from collections.abc import Callable
from types import CodeType, FrameType, MethodType
from typing import Any, NamedTuple

from chainrule.errors import LocatedError

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_DEMO = os.path.join(_PACKAGE, "__main__.py")


_GENERATED = ("<vjp of ", "<binder of ", "<compiled ", "<call of ")  # sources of ours


class _Internal(dict[str, bool]):
    """Cache of whether a file belongs to the package, by file name."""

    def __missing__(self, filename: str) -> bool:
        inside = filename.startswith((_PACKAGE, *_GENERATED)) and filename != _DEMO
        self[filename] = inside
        return inside


INTERNAL = _Internal()


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the first frame at or above `frame` that is not in the package."""
    while frame is not None and INTERNAL[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


def user_line(frame: FrameType | None) -> tuple[CodeType | None, int]:
    """Return code and instruction of the first frame of a user, at or above `frame`."""
    while frame is not None:
        code = frame.f_code
        if code is _seen[0] or not INTERNAL[code.co_filename]:
            _seen[0] = code  # in a loop, the next one is the same
            return code, frame.f_lasti
        frame = frame.f_back
    return None, 0


_seen: list[CodeType | None] = [None]


def own_frame(frame: FrameType | None) -> FrameType | None:
    """Return the first frame of the user's own code; of a library's, if there is no other."""
    found = frame = user_frame(frame)
    while found is not None and (
        is_installed(found.f_code.co_filename) or INTERNAL[found.f_code.co_filename]
    ):
        found = found.f_back
    return found or frame


def is_installed(filename: str) -> bool:
    """Tell whether a file belongs to Python or to an installed package."""
    return filename.startswith(_STANDARD) or any([part in filename for part in _PACKAGES])


_STANDARD = (os.path.dirname(os.__file__) + os.sep, "<frozen ")
_PACKAGES = [f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages")]


def user_stack_level() -> int:
    """Return the `stacklevel` with which the caller's warning is issued at the user's line."""
    level, frame = 1, sys._getframe(1)
    while INTERNAL[frame.f_code.co_filename] and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    return level


def user_function(function: Any) -> Any:
    """Return the function that methods, partials and wrappers lead to."""
    while True:
        if isinstance(function, MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, functools.partial):
            function = function.func
        else:
            return function


def file_text(filename: str) -> str:
    """Return the name of a file as its author knows it: a cell of a notebook by its number."""
    try:
        cell = sys.modules["IPython"].get_ipython().compile.format_code_name(filename)
    except (KeyError, AttributeError):  # this is no notebook
        return filename
    return filename if cell is None else " ".join(cell)


class Location(NamedTuple):
    """A line of user code."""

    filename: str
    line: int
    function: str

    @property
    def source(self) -> str:
        """The text of the line, "" if it is not known."""
        return linecache.getline(self.filename, self.line).strip()

    @property
    def place(self) -> str:
        """The file or the cell of a notebook, and the number of the line."""
        return f"{file_text(self.filename)}:{self.line}"

    @property
    def short_file(self) -> str:
        """The file without its folder, or the cell."""
        return os.path.basename(file_text(self.filename))

    @property
    def short_place(self) -> str:
        """The file without its folder, and the number of the line."""
        return os.path.basename(self.place)

    def described(self, place: str) -> str:
        """Return the line as text, with a way to write its place."""
        where = f"{place}, in {self.function}"
        return f"{where}: {self.source}" if self.source else where

    def __str__(self) -> str:
        return self.described(self.place)


def locate(code: CodeType | None, instruction: int) -> Location | None:
    """Return the line of an instruction; None if there is no user code."""
    if code is None:
        return None
    _, starts, lines = _LINES.get(id(code)) or _read_lines(code)
    line = lines[bisect.bisect_right(starts, instruction)]
    return Location(code.co_filename, line, code.co_name)


_Lines = tuple[CodeType, list[int], list[int]]
"""Code, the instructions where its lines start, and the line before each start and after all."""

_LINES: dict[int, _Lines] = {}  # by the id of the code, whose hash takes as long as the code is
_MAX_LINES = 256


def _read_lines(code: CodeType) -> _Lines:
    found = [(start, line) for start, _, line in code.co_lines() if line is not None]
    if len(_LINES) >= _MAX_LINES:
        _LINES.clear()
    lines = code, [start for start, _ in found], [code.co_firstlineno, *(line for _, line in found)]
    _LINES[id(code)] = lines
    return lines


def expression_at(code: CodeType, instruction: int) -> str:
    """Return the source of the expression that an instruction computes; empty if not known."""
    line, last, start, end = list(code.co_positions())[instruction // 2]
    if line is None or start is None or end is None:
        return ""
    lines = [linecache.getline(code.co_filename, i) for i in range(line, (last or line) + 1)]
    source = [each.encode() for each in lines]  # columns count bytes
    source[-1] = source[-1][:end]
    source[0] = source[0][start:]
    return " ".join(part.decode(errors="replace").strip() for part in source)


def here() -> Location | None:
    """Return the line of user code that is running."""
    frame = user_frame(sys._getframe(1))
    return None if frame is None else locate(frame.f_code, frame.f_lasti)


class Caller(NamedTuple):
    """The user's call that ended in an error."""

    function: str  # the public function of ours that was called, "" if it has no name of its own
    code: CodeType
    instruction: int

    def completed(self, text: str) -> str:
        """Return the text of an error with the function and the line, where it lacks them."""
        if self.function and not re.search(rf"\b{self.function}\b", text):
            text = f"{self.function}(): {text}"
        location = locate(self.code, self.instruction)
        if location is None or location.place in text:
            return text
        return f"{text}{chr(10) if chr(10) in text else ' '}({location})"


def find_caller() -> Caller | None:
    """Return the call of the user's own code that is running; None in a task of a library."""
    own = own_frame(sys._getframe(1))
    if own is None or is_installed(own.f_code.co_filename):
        return None
    return Caller(called_name(own), own.f_code, own.f_lasti)


def called_name(caller: FrameType | None = None) -> str:
    """Return the name of the public function or class of ours that the user called, else ""."""
    inner, frame = None, sys._getframe(1)
    while frame is not caller and frame.f_back is not None:
        module = frame.f_globals.get("__name__")  # None of a generated rule
        if INTERNAL[frame.f_code.co_filename] and module not in _DECORATING:
            inner = frame
        frame = frame.f_back
    return "" if inner is None else _public_name(inner)


def _public_name(frame: FrameType) -> str:
    """Return the name by which users call what runs in a frame, "" if they don't."""
    code = frame.f_code
    name, *outer = reversed(code.co_qualname.split("."))
    if name in ("__init__", "__new__"):
        made = frame.f_locals.get(code.co_varnames[0])
        name = (made if isinstance(made, type) else type(made)).__name__
        return "" if name[0] == "_" else name
    if name.strip("_") in _CALLED_BY_NUMPY:
        called = frame.f_locals.get(_CALLED_BY_NUMPY[name.strip("_")])
        return getattr(called, "__name__", "")
    if name[0] == "_" or "<" in code.co_qualname:
        return ""
    if outer:
        return name if outer[0][:1].isupper() else ""
    tensor = getattr(sys.modules.get("chainrule.autograd.tensor"), "Tensor", None)
    is_known = name in frame.f_globals.get("__all__", ()) or hasattr(tensor, name)
    return name if is_known else ""


_DECORATING = ("chainrule.autograd.modes", "chainrule.interrupts")
"""Modules whose functions call others with modes or context variables set."""

_CALLED_BY_NUMPY = {"array_function": "function", "array_ufunc": "ufunc"}
"""Names of functions by which NumPy hands calls over, and their argument that the user called."""

LocatedError.find_caller.append(find_caller)


def assigned_at(value: Any) -> Location | None:
    """Return the last line of user code that assigned a value to a variable, as the source has it.

    It is looked for where the value is a local variable: in the running function of the user, then
    in those that called it. None if there is no such line, or its source is not known.
    """
    frame = user_frame(sys._getframe(1))
    while frame is not None:
        names = {name for name, found in frame.f_locals.items() if found is value}
        line = _line_of_assignment(frame, names) if names else None
        if line is not None:
            return Location(frame.f_code.co_filename, line, frame.f_code.co_name)
        frame = user_frame(frame.f_back)
    return None


def _line_of_assignment(frame: FrameType, names: set[str]) -> int | None:
    """Return the last line before the running one that stores to one of these names."""
    code = frame.f_code
    source = "".join(linecache.getlines(code.co_filename, frame.f_globals))
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    last = max((line for _, _, line in code.co_lines() if line is not None), default=0)
    lines = {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in names
    }
    own = [line for line in lines if code.co_firstlineno <= line <= last]
    return max([line for line in own if line <= frame.f_lineno] or own, default=None)


# --- floating-point warnings ----------------------------------------------------------------------
#
# NumPy warns from C, at the Python line that called it, which is one of the package. `np.errstate`
# at each operation would cost half of its time. So the hook of Python's `warnings` module that
# shows a warning ("replace if you like") issues it again, at the line of the user's own code: a
# warning costs that, and an operation without one nothing.

_HOOK = "_showwarnmsg"  # the C code of `warnings` looks it up by this name


def show_warnings_at_the_users_line() -> None:
    """Show floating-point warnings at the user's line from now on; once is enough."""
    show = getattr(warnings, _HOOK, None)
    if show is not None and not hasattr(show, "shows_for_chainrule"):
        setattr(warnings, _HOOK, _at_the_users_line(show))


def _at_the_users_line(show: Callable[[Any], None]) -> Callable[[Any], None]:
    def show_at_the_users_line(message: Any) -> None:
        frame = sys._getframe(1)
        own = None
        if message.category is RuntimeWarning and INTERNAL[message.filename]:
            own = own_frame(frame)
        if own is None or INTERNAL[own.f_code.co_filename]:
            show(message)
            return
        text = str(message.message)
        # Other lines of the user must not count as told because this line of ours is.
        registry = frame.f_globals.get("__warningregistry__", {})
        for line in (message.lineno, 0):
            registry.pop((text, RuntimeWarning, line), None)
        getattr(warnings, "onceregistry", {}).pop((text, RuntimeWarning), None)
        warnings.warn_explicit(
            text,
            RuntimeWarning,
            own.f_code.co_filename,
            own.f_lineno,
            own.f_globals.get("__name__"),
            own.f_globals.setdefault("__warningregistry__", {}),
        )

    marked: Any = show_at_the_users_line
    marked.shows_for_chainrule = True
    return show_at_the_users_line


show_warnings_at_the_users_line()
