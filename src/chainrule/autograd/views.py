"""Views: their base, the operations that lead from it, and their history."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from chainrule.autograd.modes import current_modes, enable_grad, is_grad_enabled, run_in
from chainrule.autograd.node import AccumulateGrad, Edge, endpoint, hooks_of
from chainrule.autograd.versions import next_seq, shares_storage, write_log, writes_since
from chainrule.backend import check_known, dtype_title
from chainrule.errors import DTypeError, InPlaceError, ShapeError
from chainrule.primitives.primitive import Primitive

if TYPE_CHECKING:
    from chainrule.autograd.tensor import Tensor

_new = object.__new__
_mode = current_modes


class View:
    """The view record of a tensor: its base, and the view operations that lead from it.

    The operations are a linked list of (earlier operations, primitive, settings), so that adding
    one takes constant time.

    `base_node` is the node of the base when the view's own node was made: if the base has another
    one now, its history is new. `refusal` is the key of the reason why in-place writes are refused,
    or None. Without a base, the tensor is an alias that a custom function made at `stamp`.
    """

    __slots__ = ("base", "base_node", "path", "refusal", "stamp")

    def __init__(
        self,
        base: Tensor | None,
        path: tuple[Any, Primitive, dict[str, Any]] | None,
        refusal: str | None = None,
    ) -> None:
        self.base = base
        self.path = path
        self.base_node: Edge = None if base is None else base._node
        self.stamp = next_seq()
        self.refusal = refusal

    def steps(self) -> tuple[tuple[Primitive, dict[str, Any]], ...]:
        """Return the view operations from the base, first to last."""
        steps = []
        link = self.path
        while link is not None:
            link, primitive, settings = link
            steps.append((primitive, settings))
        return tuple(reversed(steps))

    @property
    def hidden(self) -> bool:
        """Whether users cannot see the base: see `ReshapedInPlace`."""
        return False


class ReshapedInPlace(View):
    """The view record of a tensor whose shape was changed in place.

    Its base is a tensor that only this record and earlier views know. It keeps the memory's former
    shape and history, to which the earlier views refer.
    """

    __slots__ = ()

    @property
    def hidden(self) -> bool:
        return True


class ReplacedMemory(View):
    """The view record of a tensor that was given other memory, as ``t.data = x`` does.

    It has no base. `former` is a tensor of the memory and history that it had: the base of the
    earlier views, which share that memory.
    """

    __slots__ = ("former",)

    def __init__(self, former: Tensor) -> None:
        super().__init__(None, None)
        self.stamp = sys.maxsize  # no custom function made it
        self.former = former

    @property
    def hidden(self) -> bool:
        return True


def replace_memory(tensor: Tensor, new: Any) -> None:
    """Give a tensor the memory `new`, unrecorded; raise unless it can have that.

    Earlier views keep the old memory, and its history.
    """
    old = tensor._array
    for array in (old, new):
        check_known(array, "t.data = x", "write to it, with no_grad(): t.copy_(x)")
    if tensor.requires_grad and new.dtype.kind not in "fc":
        raise DTypeError(
            f"t.data = x: t requires grad, which {dtype_title(new.dtype)} can't: convert x, with "
            ".float()"
        )
    changed = bool(new.shape != old.shape or new.dtype != old.dtype)
    if changed and tensor._grad is not None:
        raise ShapeError(
            f"t.data = x: t.grad is {dtype_title(old.dtype)} {list(old.shape)}, and x is "
            f"{dtype_title(new.dtype)} {list(new.shape)}: say t.grad = None first"
        )
    node = current_node(tensor)
    if changed and type(node) is AccumulateGrad:
        node.forget()  # gradients of graphs with the former shape
        node = AccumulateGrad(tensor)
    former = tensor.detach()
    former._node, former._view = tensor._node, tensor._view
    view = None if type(node) is AccumulateGrad else ReplacedMemory(former)
    try:
        tensor._node, tensor._view, tensor._array = node, view, new
    except BaseException:  # an interrupt: all or nothing
        tensor._node, tensor._view, tensor._array = former._node, former._view, old
        raise


def view_of(tensor: Tensor, primitive: Primitive, settings: dict[str, Any]) -> View:
    """Return the view record of the result of a view primitive."""
    parent, modes = tensor._view, _mode()
    view: View = _new(View)
    view.refusal = None if modes is None or modes.grad else "no_grad"
    if parent is None or parent.base is None:
        view.base, view.path, view.base_node = tensor, (None, primitive, settings), tensor._node
    else:
        base = parent.base if parent.base._view is None else root_of(parent, tensor._array)
        view.base, view.base_node = base, base._node
        view.path = (parent.path, primitive, settings)
    if parent is not None:
        view.refusal = view.refusal or parent.refusal
    view.stamp = 0
    return view


def current_node(tensor: Tensor) -> Edge:
    """Return the node of `tensor`; rebuild that of a view whose base has a new history."""
    view = tensor._view
    if view is None:
        return tensor._node
    base = view.base
    if base is None:
        if tensor._node is not None and write_log.last > view.stamp:
            _check_alias(tensor, view)
        return tensor._node
    if base._view is not None:
        base = root_of(view, tensor._array)
        current_node(base)  # raises if it is an alias and was written to
    if base._node is view.base_node:
        return tensor._node
    if base._node is None or type(base._node) is AccumulateGrad:
        return tensor._node  # detached, or made a leaf: no new history
    alias = base.detach()
    alias._node = base._node
    alias = run_in(enable_grad(), _replayed, view, alias)
    move_retained(tensor, tensor._node, alias._node)
    tensor._node = alias._node
    view.base_node = base._node  # last: an interrupt leaves what is made again
    return tensor._node


def _replayed(view: View, alias: Tensor) -> Tensor:
    """Return the view of a base that the operations of `view` lead to."""
    for primitive, settings in view.steps():
        alias = primitive.apply(alias, **settings)
    return alias


def root_of(view: View, array: Any) -> Tensor:
    """Return the base of a view of the memory `array`.

    Follow a base that was reshaped in place, or given other memory since, to its former self.
    """
    base: Any = view.base
    while (record := base._view) is not None:
        if type(record) is not ReplacedMemory:
            former = record.base
        else:
            former = None if shares_storage(base._array, array) else record.former
        if former is None:
            break
        base = former
    root: Tensor = base
    view.base = root
    return root


def move_retained(tensor: Tensor, old: Edge, new: Edge) -> None:
    """Move the `retain_grad` of a tensor from its old node to its new one."""
    if old is None or new is None:
        return
    node, number = endpoint(old)
    reference = None if node.hooks is None else node.hooks.retained.get(number)
    if reference is not None and reference() is tensor:
        del hooks_of(node).retained[number]
        owner, position = endpoint(new)
        hooks_of(owner).retained[position] = reference


def _check_alias(tensor: Tensor, view: View) -> None:
    """Raise if an alias, an input that a custom function returned as is, was written to since."""
    if is_grad_enabled() and writes_since(tensor._array, view.stamp):
        raise InPlaceError(
            f"Output {endpoint(tensor._node)[1]} of {endpoint(tensor._node)[0].name} is a view and "
            "its base or another view of its base has been modified inplace. This view was created "
            "inside a custom function (or because an input was returned as-is), so its history "
            "can't follow the write: clone() the output."
        )
