"""Conversions of tensors to numbers and arrays, which a running transform refuses.

A number has no history: where a transform handed a tensor to its function, or the tensor depends
on one that it did, a conversion would make the derivative silently wrong.
"""

from __future__ import annotations

import ast
import dis
import sys
import warnings
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from chainrule.autograd.location import (
    expression_at,
    file_text,
    locate,
    own_frame,
    user_frame,
    user_stack_level,
)
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.node import Node, NodeOutput, endpoint
from chainrule.autograd.views import current_node
from chainrule.backend import is_known
from chainrule.errors import ArgumentError, ArgumentTypeError, AutogradError

if TYPE_CHECKING:
    from chainrule.autograd.tensor import Tensor


class DifferentiatedError(AutogradError):
    """A conversion to a number that would make a derivative silently wrong."""


class Running:
    """A transform that is calling its function of `inputs`, and those around it."""

    __slots__ = ("inputs", "outer")

    def __init__(self) -> None:
        self.inputs: list[Tensor] = []
        self.outer = RUNNING.get()


RUNNING: ContextVar[Running | None] = ContextVar("chainrule running transforms", default=None)


def is_differentiated(tensor: Tensor) -> bool:
    """Return whether a tensor depends on one that a running transform handed to its function."""
    running, sources = RUNNING.get(), set[Node]()
    while running is not None:
        sources.update([endpoint(current_node(t))[0] for t in running.inputs])
        running = running.outer
    if not sources or not is_grad_enabled():
        return False
    edge = current_node(tensor)
    if edge is None:
        return False
    earliest = min(node.seq for node in sources)
    return _leads_to(endpoint(edge)[0], sources, earliest)


def _leads_to(node: Node, sources: set[Node] | None, earliest: int = 0) -> bool:
    """Return whether a derivative by a source can be other than zero: not that of ``floor(x)``.

    Without `sources`, any leaf is one.
    """
    reached, stack = {node}, [node]
    while stack:
        node = stack.pop()
        if node in sources if sources is not None else not node.edges:
            return True
        for edge in () if node.is_step else node.edges:
            found: Any = edge.node if type(edge) is NodeOutput else edge
            if found is not None and found not in reached and found.seq >= earliest:
                reached.add(found)
                stack.append(found)
    return False


def has_gradient(tensor: Tensor) -> bool:
    """Return whether anything has a gradient by way of a tensor.

    It has not if the tensor is piecewise constant, as ``x // h`` is.
    """
    edge = current_node(tensor)
    return edge is not None and _leads_to(endpoint(edge)[0], None)


def _is_step(tensor: Tensor) -> bool:
    """Return whether a number in the place of a tensor loses nothing in the running transform."""
    return RUNNING.get() is not None and not has_gradient(tensor)


def check_number(tensor: Tensor) -> None:
    """Raise if a tensor is no number; warn before Python reads that of one that requires grad.

    The caller is a special method, such as ``__float__``.
    """
    if tensor._array.size != 1:  # a ValueError, as in PyTorch: Matplotlib catches it
        text, mend = attempted(sys._getframe(1), "")
        place = f" in {text}. {mend}" if mend else ". Use tolist()"
        raise ArgumentError(
            "only one element tensors can be converted to Python scalars: got the shape "
            f"{list(tensor._array.shape)}{place}"
        )
    if not tensor.requires_grad or not is_grad_enabled():
        return
    frame = sys._getframe(1)
    if _formats_text(frame) or _is_step(tensor):
        return
    check_differentiated(tensor)
    converting, own = user_frame(frame), own_frame(frame)
    level, advice = user_stack_level(), ""
    if converting is not own and converting is not None and own is not None:  # a library's line
        ours = _of_scipy(converting, own)
        advice = f" Call {ours}, which is recorded." if ours else ""
        while converting is not own and converting is not None:
            level, converting = level + 1, converting.f_back
    warnings.warn(
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected "
        f"behavior. Consider using tensor.detach() first, or item().{advice}",
        UserWarning,
        stacklevel=level,
    )


def _formats_text(frame: FrameType | None) -> bool:
    """Return whether ``"%.3f" % x`` calls a special method, as no other remainder does."""
    while frame is not None and frame.f_globals.get("__name__") == _TENSOR_CLASS:
        frame = frame.f_back
    if frame is None:
        return False
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at] == _BINARY_OP and code[at + 1] in _REMAINDERS


_TENSOR_CLASS = "chainrule.autograd.tensor"
_BINARY_OP = dis.opmap["BINARY_OP"]
_REMAINDERS = (6, 19)  # NB_REMAINDER and NB_INPLACE_REMAINDER of CPython's opcode.h


def check_differentiated(tensor: Tensor) -> None:
    """Raise before a tensor becomes a number or an array, where a running transform needs it.

    What to write instead follows from the line of the user.
    """
    if not is_differentiated(tensor):
        return
    attempt, mend = attempted(sys._getframe(1), _FLOAT)
    raise DifferentiatedError(
        f"{attempt} makes a number of a Tensor that a running transform differentiates (grad(), "
        "jacobian() or the like handed it to the function, or it depends on one): its gradient "
        f"would be lost. {mend}. A constant on purpose is x.detach(), "
        "or x.detach().item()"
    )


class _NumberText(str):
    """The text of what a transform differentiates, of which Python makes no number in silence."""

    __slots__ = ()

    def __float__(self) -> float:
        attempt, _ = attempted(sys._getframe(1), "")
        raise DifferentiatedError(
            f"{attempt} makes a number of the text of a Tensor that a running transform "
            "differentiates: its gradient would be lost. Compute with the Tensor itself; "
            "round(x, digits) rounds it. A constant on purpose is x.detach()"
        )

    __int__ = __float__


def text_of(tensor: Tensor, text: str) -> str:
    """Return the text of a tensor, one that is no number where a running transform needs it."""
    return _NumberText(text) if tensor.requires_grad and is_differentiated(tensor) else text


def formatted(tensor: Tensor, spec: str) -> str:
    """Return the text of ``format(tensor, spec)``: of a number, or of the whole without `spec`."""
    array = tensor._array
    if array.ndim == 0 and (spec or is_known(array)):
        return text_of(tensor, format(array.item(), spec))
    if spec:
        raise ArgumentTypeError(
            f"unsupported format string passed to Tensor.__format__: {spec!r} formats one "
            f"number, but the shape is {list(array.shape)}. Format the numbers of tolist(), or "
            "choose digits with set_printoptions(precision=...)"
        )
    return str(tensor)


def check_kept(array: Any) -> None:
    """Raise for an array that stands for others, if it was kept after what it was made for."""
    check = getattr(array, "check_kept", None)
    if check is not None:
        check()


_FLOAT = "Leave the conversion out: a Tensor of one element computes as a number does"
_LIST = "Iterate over the array, whose elements are recorded, in the place of a list of numbers"
_CAST = "Write x.astype(dtype), which is recorded, or leave the conversion out"
_STORE = (
    "Write into an array that records: import chainrule.numpy as np makes them, in the place of "
    "NumPy, and a = np.array(a) of one that comes from integers or truth values. Or make the array "
    "of its elements, numpy.stack([...])"
)
STACK = (
    "cr.stack([t, ...]) or numpy.stack of Tensors keeps the gradient, x.clone() of one. So does "
    "numpy.array with import chainrule.numpy as np"
)
_LIBRARY = (
    "{} computes with numbers: hand it x.detach() if no gradient passes there; or else compute "
    "with Tensors and NumPy's arrays alone, or give the call a derivative with cr.wrap"
)
_UNCHANGED = frozenset(
    ["", "numpy", "scipy", "pandas", "matplotlib", "xarray", "torch", "chainrule"]
)
"""Libraries that `chainrule.imported` has no use for."""
_SCALE = "Scale a constant Tensor, value * chainrule.ones(shape)"
_SPREAD = "Scale a constant one, start + (stop - start) * chainrule.linspace(0, 1, steps)"
_DRAW = "Scale a standard draw, mean + std * chainrule.randn(shape)"
_OF_ARRAYS = (_STORE, STACK, _SCALE, _SPREAD, _DRAW)
_MENDS = {
    name: mend
    for names, mend in {
        "float int complex item": _FLOAT,
        "tolist tobytes": _LIST,
        "array asarray asanyarray fromiter Series DataFrame": STACK,
        "ascontiguousarray asfortranarray require matrix asmatrix masked_array": STACK,
        "fill put itemset place": _STORE,
        "float16 float32 float64 complex64 complex128": _CAST,
        "int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool_ intp": _CAST,
        "tensor new_tensor scalar_tensor": STACK,
        "full full_like new_full": _SCALE,
        "linspace logspace arange range": _SPREAD,
        "normal": _DRAW,
    }.items()
    for name in names.split()
}


def attempted(frame: FrameType, default: str) -> tuple[str, str]:
    """Return the expression of the user that converts, and what to write in its place."""
    converting, frame_of_user = user_frame(frame), own_frame(frame)
    if converting is None or frame_of_user is None:
        return "this", default
    text, mend = _attempt(frame_of_user)
    if ours := _of_scipy(converting, frame_of_user):
        return text, f"Call {ours}, which is recorded"
    if not mend and converting is not frame_of_user:
        library = _library_of(converting)
        mend = _of_numpy(text) if library == "numpy" else _LIBRARY.format(library)
        if library not in _UNCHANGED and library not in sys.stdlib_module_names:
            mend += f". Code in Python alone records if imported as chainrule.imported.{library}"
    return text, mend or default


def asked_for_value(frame: FrameType) -> tuple[str, str]:
    """Return who asks for the value of a tensor that has none, and what to write instead, if known.

    That is the user's line, and the library.
    """
    converting, own = user_frame(frame), own_frame(frame)
    if converting is None or own is None:
        return "", ""
    line = f"at {locate(own.f_code, own.f_lasti)}"
    text, mend = _attempt(own)
    is_known = text.startswith("math.") or (mend in _OF_ARRAYS and not text.startswith("range("))
    mend = f"{text} makes numbers. {mend}" if is_known else ""
    if converting is own:
        return line, mend
    library = _library_of(converting)
    if converting.f_globals.get("__name__", "").startswith(_IMPORTED):
        return f"by {library} at {locate(converting.f_code, converting.f_lasti)}, {line}", mend
    ours = _of_scipy(converting, own)
    advice = f"call {ours}, which does" if ours else "call it outside"
    return (
        f"by {library}, whose functions compute with numbers and don't take part in this "
        f"({advice}), {line}"
    ), mend


def _library_of(frame: FrameType) -> str:
    """Return the name of the library that a function's code is of."""
    name = str(frame.f_globals.get("__name__", ""))
    return name.removeprefix(_IMPORTED).partition(".")[0]


_IMPORTED = "chainrule.imported."


def product_left_to(operand: Any, frame: FrameType) -> Any:
    """Return what a product of a sparse matrix of SciPy's gets for an operand, else None.

    If that isn't an array of numbers, but an object, the product is left to the operand's class.
    """
    module = str(frame.f_globals.get("__name__", ""))
    if frame.f_code.co_name != "_matmul_dispatch" or not module.startswith("scipy.sparse"):
        return None
    held = np.empty((), object)
    held[()] = operand
    return held


NO_NUMBERS = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."


def instead_of_array(tensor: Tensor, error: AutogradError, frame: FrameType) -> Any:
    """Return what ``__array__`` returns in the place of numbers that it must not give, or raise."""
    held = product_left_to(tensor, frame)
    if held is not None:
        return held
    if not tensor.requires_grad:
        raise error
    if _is_step(tensor):
        return tensor.detach().numpy()
    check_differentiated(tensor)
    text, mend = attempted(frame, STACK)
    raise AutogradError(f"{NO_NUMBERS} NumPy asked for it in {text}. {mend}.") from None


def check_copyable(tensor: Tensor, frame: FrameType) -> None:
    """Raise before a copy or a pickle of a tensor is made that would lose its history."""
    if not tensor.is_leaf:
        raise _copy_error(tensor, frame)
    if is_differentiated(tensor):
        raise DifferentiatedError(
            f"{attempted(frame, '')[0]} makes a copy without history of a Tensor that a running "
            "transform differentiates: its gradient would be lost. x.clone() is a copy that keeps "
            "it. A constant on purpose is x.detach()"
        )


def _copy_error(tensor: Tensor, frame: FrameType) -> AutogradError:
    text, _ = attempted(frame, "")
    if library := _copying_library(frame):
        return AutogradError(
            f"Can't call numpy() on Tensor that requires grad. {library} reads and copies its "
            f"values in {text}: hand it x.detach() in the place of x"
        )
    return AutogradError(
        "only leaf tensors (Tensors created explicitly by the user) support pickling and the "
        f"deepcopy protocol at the moment: this one was made by {tensor.grad_fn}, in {text}; use "
        "detach() first"
    )


def _copying_library(frame: FrameType | None) -> str:
    """Return the name of the library that has called `copy` or `pickle`, "" for the user's call."""
    own = own_frame(frame)
    while frame is not None and frame is not own:
        name = _library_of(frame)
        if name not in sys.stdlib_module_names and name != "chainrule":
            return name
        frame = frame.f_back
    return ""


def _attempt(frame: FrameType) -> tuple[str, str]:
    text, operation = _expression(frame)
    if operation in ("STORE_SUBSCR", "STORE_SLICE"):
        return f"{text} = ...", _STORE
    call = _call_in(text)
    name = "" if call is None else getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name in _MENDS:
        return text, _MENDS[name]
    if call is not None and _is_method(call, frame) and callable(getattr(np, name, None)):
        return text, f"Write numpy.{_as_function(call)}, which is recorded"
    if call is not None and call.args and isinstance(call.args[0], _LISTS):
        return text, STACK
    if callable(getattr(_tensor_class(), name, None)) and hasattr(sys.modules["chainrule"], name):
        return text, f"Write chainrule.{name}, which is recorded"
    return text or f"{file_text(frame.f_code.co_filename)}:{frame.f_lineno}", ""


def _of_scipy(frame: FrameType | None, user: FrameType) -> str:
    """Return the name of our function for the function of SciPy that the user called, if any."""
    found = ""
    while frame is not None and frame is not user:
        module = str(frame.f_globals.get("__name__", ""))
        inner = frame.f_locals.get("f")  # the function that a decorator of SciPy's calls
        for name in (frame.f_code.co_name, str(getattr(inner, "__name__", ""))):
            library, _, rest = str(getattr(inner, "__module__", module)).partition(".")
            package = f"{library}.{rest.partition('.')[0]}"
            known = library == "scipy" and hasattr(sys.modules.get(package), name)
            if known and name[:1] != "_" and _records(f"chainrule.{package}", name):
                found = f"chainrule.{package}.{name}"
        if module.startswith("scipy.stats") and frame.f_code.co_name[:1] != "_":
            found = _distribution(frame) or found
        frame = frame.f_back
    return found


def _records(module: str, name: str) -> bool:
    """Return whether a function of ours has a rule, and doesn't stand for SciPy's own alone."""
    if not _has_public(module, name):
        return False
    found = getattr(import_module(module), name)
    is_ours = str(getattr(found, "__module__", "")).startswith("chainrule.")
    return is_ours and bool(getattr(found, "has_rule", True))


def _distribution(frame: FrameType) -> str:
    """Return the name of our method for the one of a distribution that a frame of SciPy runs."""
    owner, method = frame.f_locals.get("self"), frame.f_code.co_name
    owner = getattr(owner, "dist", owner)  # of one with its parameters
    name = str(getattr(owner, "name", ""))
    stats = sys.modules.get("scipy.stats")
    if type(owner).__name__ != f"{name}_gen":  # of several variables: it has no name
        same = [each for each, found in vars(stats).items() if found is owner] if stats else []
        name = same[0] if same else ""
    if not name or not _has_public("chainrule.scipy.stats", name):
        return ""
    ours = getattr(import_module("chainrule.scipy.stats"), name)
    is_ours = type(ours).__module__.startswith("chainrule.") and hasattr(ours, method)
    return f"chainrule.scipy.stats.{name}.{method}" if is_ours else ""


def _of_numpy(text: str) -> str:
    """Return what to write for a function of NumPy's that makes numbers of tensors."""
    call = _call_in(text)
    while call is not None and isinstance(call.func, ast.Call):  # as np.vectorize(f)(x)
        call = call.func
    name = getattr(getattr(call, "func", None), "attr", "")
    if not callable(getattr(np, name, None)) or not _has_public("chainrule.numpy", name):
        return STACK
    return f"Say import chainrule.numpy as np: its np.{name} is recorded"


def _has_public(module: str, name: str) -> bool:
    """Whether a module of ours has a function of this name."""
    try:
        if find_spec(module) is None:
            return False
    except ModuleNotFoundError:  # of a name that `missing_names` knows
        return False
    ours = import_module(module)
    return name in getattr(ours, "__all__", dir(ours))


_LISTS = (ast.List, ast.Tuple, ast.ListComp)


def _call_in(text: str) -> ast.Call | None:
    """Return the call that an expression is, if it is one."""
    try:
        found = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    return found if isinstance(found, ast.Call) else None


def _is_method(call: ast.Call, frame: FrameType) -> bool:
    """Whether what is called is a method of an object, not a function of a module."""
    if not isinstance(call.func, ast.Attribute):
        return False
    owner: ast.expr = call.func.value
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    name = getattr(owner, "id", "")
    return not isinstance(frame.f_locals.get(name, frame.f_globals.get(name)), ModuleType)


def _as_function(call: ast.Call) -> str:
    """Return a call of a method as that of a function: ``a.dot(x)`` as ``dot(a, x)``."""
    method = cast(ast.Attribute, call.func)
    arguments = [method.value, *call.args]
    return ast.unparse(ast.Call(ast.Name(method.attr), arguments, call.keywords))


def _tensor_class() -> Any:
    return sys.modules["chainrule.autograd.tensor"].Tensor


def _expression(frame: FrameType) -> tuple[str, str]:
    """Return the source of what a frame is executing, and the name of the instruction."""
    operation = ""
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset > frame.f_lasti:
            break
        operation = instruction.opname
    return expression_at(frame.f_code, frame.f_lasti), operation
