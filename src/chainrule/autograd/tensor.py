"""The class `Tensor`: an array and its node in the graph."""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from chainrule.autograd.conversions import (
    NO_NUMBERS,
    check_copyable,
    check_kept,
    check_number,
    formatted,
    instead_of_array,
)
from chainrule.autograd.formatting import tensor_text
from chainrule.autograd.modes import current_modes, is_grad_enabled
from chainrule.autograd.node import (
    AccumulateGrad,
    Edge,
    Node,
    RemovableHandle,
    endpoint,
    hooks_of,
    made_at,
)
from chainrule.autograd.size import ShapeOrCount, Size, as_size
from chainrule.autograd.versions import version_of
from chainrule.autograd.views import View, current_node, replace_memory
from chainrule.backend import (
    CPU,
    device,
    device_of,
    dtype_title,
    move,
    ndarray,
    with_plain_dtype,
)
from chainrule.errors import ArgumentTypeError, AutogradError, DTypeError, InPlaceError, ShapeError

if TYPE_CHECKING:
    from chainrule.autograd.tensor_methods import TensorMethods
else:
    TensorMethods = object  # `chainrule.operation` attaches the methods; checkers read the stub

Array = Any
_new = object.__new__


class Tensor(TensorMethods):
    """An array that records what happens to it.

    Make one with `tensor`, `asarray`, `from_numpy`, `zeros` and the like. A tensor that requires
    grad has a node: the operation that made it, or `AccumulateGrad` for a leaf.
    """

    __slots__ = ("__weakref__", "_array", "_frozen", "_grad", "_member", "_node", "_view")

    _array: Array
    _node: Edge
    _frozen: AccumulateGrad  # only of a leaf that no longer requires grad
    _grad: Tensor | None
    _member: str  # of a parameter or buffer: the kind of member of a module that it becomes
    _view: View | None

    is_carried: ClassVar[bool] = False
    """Whether results of operations on tensors of this class are of this class, too."""

    __array_priority__ = 1000.0

    def __init__(self, *data: Any) -> None:
        """Do nothing: `chainrule.creation.tensor_types` gives the class its `__new__`."""

    # --- the array ---

    @property
    def shape(self) -> Size:
        """The sizes of the dimensions."""
        return as_size(Size, self._array.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        ndim: int = self._array.ndim
        return ndim

    @property
    def dtype(self) -> Any:
        """The elements' dtype, a `numpy.dtype`."""
        return self._array.dtype

    @property
    def device(self) -> device:
        """Where the array lives."""
        return device_of(self._array)

    @property
    def size(self) -> Any:
        """The number of elements; ``size()`` is the shape and ``size(dim)`` one of its entries."""
        size = ShapeOrCount(self._array.size)
        size.shape = self._array.shape
        return size

    def dim(self) -> int:
        """Return the number of dimensions."""
        ndim: int = self._array.ndim
        return ndim

    def numel(self) -> int:
        """Return the number of elements."""
        return int(self._array.size)

    nelement = numel

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return int(self._array.dtype.itemsize)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Return whether the elements are contiguous in memory, in C order.

        For PyTorch's ``"torch.channels_last"``: whether they are with the channels last.
        """
        array = self._array
        if str(memory_format).startswith("torch.channels_last"):
            array = array.transpose(0, *range(2, array.ndim), 1)
        return bool(array.flags.c_contiguous)

    def is_floating_point(self) -> bool:
        """Return whether the dtype is a real floating one."""
        kind: str = self._array.dtype.kind
        return kind == "f"

    def is_complex(self) -> bool:
        """Return whether the dtype is complex."""
        kind: str = self._array.dtype.kind
        return kind == "c"

    # --- the graph ---

    @property
    def _edge(self) -> Edge:
        """The current node; for an alias with a stale history, the last one instead of an error."""
        if self._view is None:
            return self._node
        try:
            return current_node(self)
        except InPlaceError:
            return self._node

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded. Settable on leaves."""
        return self._edge is not None

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.requires_grad_(flag)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Start or stop recording operations on this leaf, in place; return it.

        Examples
        --------
        >>> import chainrule as cr
        >>> cr.ones(2).requires_grad_()
        tensor([1., 1.], requires_grad=True)
        """
        if requires_grad and self._array.dtype.kind not in "fc":
            raise DTypeError(
                "only Tensors of floating point and complex dtype can require gradients, "
                f"got {self._array.dtype}: convert it first, with .float() or .to(dtype)"
            )
        if self.is_leaf:
            if not requires_grad and self._node is not None:
                self._frozen, self._node = self._node, None
            elif requires_grad and self._node is None:
                if self._view is not None and self._view.hidden:
                    self._view = None  # a leaf of its own, as if never reshaped in place
                # The same node as before, if any: its hooks and recorded graphs stay valid.
                self._node = getattr(self, "_frozen", None) or AccumulateGrad(self)
        elif not requires_grad:
            raise AutogradError(
                "you can only change requires_grad flags of leaf variables. This tensor is the "
                f"output of {self.grad_fn}; use detach() for one that doesn't require "
                "differentiation."
            )
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor."""
        node = self._edge
        return node is None or type(node) is AccumulateGrad

    @property
    def grad_fn(self) -> Node | None:
        """The node that made this tensor; None for a leaf."""
        node = self._edge
        if node is None or type(node) is AccumulateGrad:
            return None
        return endpoint(node)[0].shown()

    @property
    def output_nr(self) -> int:
        """Index of this tensor among the outputs of `grad_fn`."""
        node = self._edge
        return 0 if node is None else endpoint(node)[1]

    @property
    def _version(self) -> int:
        return version_of(self._array)

    @property
    def _base(self) -> Tensor | None:
        return None if self._view is None or self._view.hidden else self._view.base

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient of a leaf (or after `retain_grad`), None before any."""
        if self._grad is None and not self.is_leaf and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
                ".grad attribute won't be populated during autograd.backward(). Use .retain_grad() "
                "on the non-leaf Tensor, or read the .grad of the leaf; a parameter that was "
                f"rebound (w = w - lr * w.grad) is no leaf. It was made by {self.grad_fn}.",
                UserWarning,
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            self._check_grad(value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def _check_grad(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(
                f"assigned grad expected to be a Tensor or None but got {type(value)}"
                ": write tensor(...) of it"
            )
        if value is self:
            raise AutogradError("can't assign Variable as its own grad")
        if value.shape != self.shape:
            raise ShapeError(
                f"assigned grad has data of a different size: got {list(value.shape)}, expected "
                f"{list(self.shape)}"
            )
        if value.dtype != self.dtype:
            raise DTypeError(
                f"assigned grad has data of a different type: got {dtype_title(value.dtype)}, "
                f"expected {dtype_title(self.dtype)}"
            )
        if value.device != self.device:
            raise ShapeError(
                "assigned grad has data located on a different device: got "
                f"{value.device}, expected {self.device}"
            )

    # --- hooks ---

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call ``hook(grad)`` with the total gradient, once per pass; it may return a replacement.

        Examples
        --------
        >>> import chainrule as cr
        >>> x = cr.tensor(1.0, requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 10)
        >>> (2 * x).backward()
        >>> x.grad.item()
        20.0
        """
        node = current_node(self)
        if node is None:
            raise AutogradError(f"{_NO_HOOK}: {_NO_GRADIENT}")
        owner, index = endpoint(node)
        return RemovableHandle(hooks_of(owner).of(index), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call ``hook(self)`` after a backward pass has added to the `.grad` of this leaf."""
        node = current_node(self)
        if node is None:
            raise AutogradError(f"{_NO_HOOK}: {_NO_GRADIENT}")
        if type(node) is not AccumulateGrad:
            raise AutogradError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors, and this is "
                f"the output of {made_at(endpoint(node)[0])}. Use register_hook()"
            )
        return RemovableHandle(hooks_of(node).post_accumulate, hook)

    def retain_grad(self) -> None:
        """Keep the gradient of this non-leaf in `.grad`, as leaves always do."""
        node = current_node(self)
        if node is None:
            raise AutogradError(
                f"can't retain_grad on Tensor that has requires_grad=False: {_NO_GRADIENT}"
            )
        if type(node) is not AccumulateGrad:
            owner, index = endpoint(node)
            hooks_of(owner).retained[index] = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        """Whether this is a non-leaf whose `.grad` is kept."""
        node = self._edge
        if node is None or type(node) is AccumulateGrad:
            return False
        owner, index = endpoint(node)
        if owner.hooks is None or index not in owner.hooks.retained:
            return False
        return owner.hooks.retained[index]() is self

    # --- differentiation ---

    def detach(self) -> Tensor:
        """Return a tensor of the same memory and version, outside the graph."""
        return make(self._array, None)

    def detach_(self) -> Tensor:
        """Take this tensor out of the graph, in place: it becomes a leaf without grad."""
        if self._view is not None and not self._view.hidden:
            raise AutogradError(
                "Can't detach views in-place. Use detach() instead: a view follows the history of "
                "its base."
            )
        self._node = self._view = None
        return self

    @property
    def data(self) -> Tensor:
        """The values outside the graph: `detach()`. Settable: the tensor then shares the memory.

        A write through it is one to this tensor, with the same version: a backward pass that needs
        the old values raises; one that needs other elements of the memory does not. ``t.data = x``
        gives `t` the memory of `x`, also of another shape and dtype, without being recorded. `t`
        stays the same leaf, or the result of the same operation; what was computed from it keeps
        the old values, and its views keep the old memory.

        Examples
        --------
        >>> import chainrule as cr
        >>> w = cr.tensor([1.0, 2.0], requires_grad=True)
        >>> w.data -= 0.5
        >>> w.data = w.data * 2
        >>> w
        tensor([1., 3.], requires_grad=True)
        """
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(
                f"t.data = x: x has to be a Tensor, but got {type(value).__name__}: from_numpy() "
                "makes one of an array"
            )
        if value._array is not self._array:  # as it is after t.data += x
            replace_memory(self, value._array)

    # --- conversion to Python and NumPy ---

    def numpy(self, *, force: bool = False) -> Any:
        """Return the NumPy array, sharing memory.

        Parameters
        ----------
        force : bool, default False
            Detach and copy to the CPU first, if need be.
        """
        array = self._array
        if array.__class__ is ndarray and (
            force or self._node is None is self._view or not is_grad_enabled()
        ):
            return array  # the usual case
        if array.__class__ is not ndarray and not force and self.device != CPU:
            raise ArgumentTypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to "
                "copy the tensor to host memory first."
            )
        if not force and is_grad_enabled() and self.requires_grad:
            raise AutogradError(
                f"{NO_NUMBERS} Where a gradient shall pass, hand the tensor itself to NumPy's "
                "functions, as in np.sqrt(x)."
            )
        if array.__class__ is not ndarray:
            check_kept(array)
        return move(array, CPU)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        try:
            return np.array(self.numpy(), dtype=dtype, copy=copy)
        except AutogradError as error:
            return instead_of_array(self, error, sys._getframe(1))

    def item(self) -> Any:
        """Return the one element as a Python number."""
        if self._array.size != 1:
            raise AutogradError(
                f"a Tensor with {self._array.size} elements cannot be converted to Scalar: item() "
                "takes a single element; use tolist()"
            )
        return self._array.item()

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers (a number for a 0-d tensor)."""
        return self._array.tolist()

    def _scalar(self) -> Any:
        check_number(self)
        return self._array.item()

    def __float__(self) -> float:
        return float(self._scalar())

    def __int__(self) -> int:
        return int(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __bool__(self) -> bool:
        if self._array.size != 1:
            count = "more than one value" if self._array.size else "no values"
            raise AutogradError(
                f"Boolean value of Tensor with {count} is ambiguous: its shape is "
                f"{list(self._array.shape)}. Use all() or any(); of elements, `and`, `or` and "
                "`not` are &, | and ~, and a < x < b is (a < x) & (x < b)"
            )
        return bool(self._array.item())

    def __index__(self) -> int:
        if self._array.dtype.kind not in "iub" or self._array.size != 1:
            raise ArgumentTypeError(
                "only integer tensors of a single element can be converted to an index, but got "
                f"{self._array.dtype} of the shape {list(self._array.shape)}: write int(x) of a "
                "number, and choose one of several"
            )
        return int(self._array.item())

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise ArgumentTypeError("len() of a 0-d tensor, which is a number: it has no rows")
        return len(self._array)

    def __iter__(self) -> Iterator[Tensor]:
        if self._array.ndim == 0:
            raise ArgumentTypeError(
                "iteration over a 0-d tensor, which is a number: take it itself, or x.reshape(1)"
            )
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        flipped: Tensor = self.flip(0) if self._array.ndim else self
        return flipped

    def __contains__(self, value: Any) -> bool:
        if not isinstance(value, Tensor | ndarray | np.generic | bool | int | float | complex):
            raise DTypeError(
                "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                f"{type(value)}"
            )
        return bool((self._array == getattr(value, "_array", value)).any())

    def __hash__(self) -> int:
        return id(self)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + int(self._array.nbytes)  # Dask weighs results by it

    def _repr_html_(self) -> str:
        html: str = import_module("chainrule.visualization.notebook").tensor_html(self)
        return html

    def __repr__(self) -> str:
        text = tensor_text(self, default_dtype())
        return f"Parameter containing:\n{text}" if is_parameter(self) else text

    def __format__(self, spec: str) -> str:
        return formatted(self, spec)

    # --- copies ---

    def __reduce_ex__(self, protocol: Any) -> Any:
        check_copyable(self, sys._getframe(1))
        array = move(self._array, CPU)
        if protocol >= 5 and not array.flags.forc:
            array = array.copy()  # once: NumPy sends only contiguous memory out of band
        rebuilt = array, str(self.device), self.requires_grad, self._grad
        kind = member_kind(self)
        return _rebuild, (*rebuilt, kind) if kind else rebuilt

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        rebuild, (_, device_name, requires_grad, grad, *kind) = self.__reduce_ex__(4)
        grad = None if grad is None else grad.__deepcopy__(memo)
        copied: Tensor = rebuild(self._array.copy(), device_name, requires_grad, grad, *kind)
        memo[id(self)] = copied
        return copied


_NO_HOOK = "cannot register a hook on a tensor that doesn't require gradient"
_NO_GRADIENT = (
    "no gradient arrives at it. Call requires_grad_() first; what was computed under no_grad() or "
    "from detached tensors alone is a constant"
)


def member_kind(tensor: Tensor) -> str | None:
    """Return the kind of member of a module that a tensor is made to become, None if of none."""
    return getattr(tensor, "_member", None)


def is_parameter(tensor: Tensor) -> bool:
    """Return whether a tensor is a parameter of a module: an `nn.Parameter`."""
    return member_kind(tensor) == "parameter"


def _rebuild(
    array: Array,
    device_name: str,
    requires_grad: bool,
    grad: Tensor | None,
    kind: bool | str = False,  # True is "parameter"
) -> Tensor:
    tensor = make(move(with_plain_dtype(array), device(device_name)), None)
    tensor._grad = grad
    if kind:
        tensor._member = "parameter" if kind is True else kind
    return tensor.requires_grad_(requires_grad)


def make(array: Array, node: Edge) -> Tensor:
    """Return a tensor of `array` that `node` made."""
    tensor: Tensor = _new(Tensor)
    tensor._array = array
    tensor._node = node
    tensor._grad = tensor._view = None
    return tensor


default_dtypes: list[np.dtype[Any]] = [np.dtype(np.float32)]
"""The default dtype of the process, its only element."""


def default_dtype() -> np.dtype[Any]:
    """Return the dtype of tensors made from Python floats."""
    modes = current_modes()
    return default_dtypes[0] if modes is None else modes.default_dtype or default_dtypes[0]


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype of tensors made from Python floats.

    Parameters
    ----------
    dtype : dtype
        A real floating dtype: float32 at the start.

    Raises
    ------
    DTypeError
        If it is no real floating dtype.
    """
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        raise DTypeError(
            f"only floating-point types are supported as the default type, got {dtype}"
        )
    default_dtypes[0] = dtype
