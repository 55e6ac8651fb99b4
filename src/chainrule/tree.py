"""Trees of containers: their leaves, and functions of them, as transforms take them.

Containers are dicts, lists, tuples, named tuples, dataclasses, xarray's `DataArray` and `Dataset`,
and objects of registered classes. Everything else is a leaf, None too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.arguments import tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_array
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.ops import cat, reshape
from chainrule.transforms.kinds import common_kind, in_kind, kind_of, values_of

__all__ = ["flatten", "leaves", "map", "ravel", "register", "unflatten"]


def leaves(tree: Any) -> list[Any]:
    """Return the leaves of a tree, in order.

    Examples
    --------
    >>> leaves({"w": [1.0, 2.0], "b": (3.0, None)})
    [1.0, 2.0, 3.0, None]
    """
    return [leaf for _, leaf in pytree.leaves(tree)]


def map(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Return a tree of the results of a function of the leaves.

    Parameters
    ----------
    function : callable
        Takes a leaf, and the leaves at the same place of the others.
    tree : containers
        The tree whose structure the result has.
    *others : containers
        Of the same structure.

    Raises
    ------
    ArgumentError
        If another tree has another structure: says where.

    Examples
    --------
    >>> map(lambda p, g: p - 0.5 * g, {"w": 1.0, "b": [2.0]}, {"w": 2.0, "b": [0.0]})
    {'w': 0.0, 'b': [2.0]}
    """
    columns = [leaves(tree)]
    for number, other in enumerate(others, 1):
        column = []
        for path, leaf, counterpart in pytree.zip_leaves(tree, other):
            if pytree.children(leaf) is not None or pytree.children(counterpart) is not None:
                raise ArgumentError(
                    f"tree.map: the trees must have the same structure: at {path or 'the root'}, "
                    f"the first is {pytree.describe(leaf)}, number {number} of the others "
                    f"{pytree.describe(counterpart)}"
                )
            column.append(counterpart)
        columns.append(column)
    found = iter([function(*each) for each in zip(*columns, strict=True)])
    return pytree.map_leaves(tree, lambda _: next(found))


class TreeDef:
    """The structure of a tree: its containers, and the paths of its leaves."""

    def __init__(self, tree: Any) -> None:
        self._tree = pytree.map_leaves(tree, lambda leaf: leaf)
        self.paths = [path for path, _ in pytree.leaves(tree)]

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        return len(self.paths)

    def __repr__(self) -> str:
        return f"TreeDef({pytree.map_leaves(self._tree, lambda _: _LEAF)!r})"


class _Leaf:
    def __repr__(self) -> str:
        return "*"


_LEAF = _Leaf()


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """Return the leaves of a tree, and its structure for `unflatten`.

    Examples
    --------
    >>> flatten({"w": [1.0, 2.0], "b": 3.0})
    ([1.0, 2.0, 3.0], TreeDef({'w': [*, *], 'b': *}))
    """
    return leaves(tree), TreeDef(tree)


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """Return the tree of a structure and leaves.

    Raises
    ------
    ArgumentError
        If the number of leaves is another one.

    Examples
    --------
    >>> numbers, structure = flatten({"w": [1.0, 2.0], "b": 3.0})
    >>> unflatten(structure, [10 * x for x in numbers])
    {'w': [10.0, 20.0], 'b': 30.0}
    """
    given = list(leaves)
    if len(given) != treedef.num_leaves:
        raise ArgumentError(
            f"tree.unflatten: the structure has {treedef.num_leaves} leaves, got {len(given)}"
        )
    following = iter(given)
    return pytree.map_leaves(treedef._tree, lambda _: next(following))


def register(
    cls: type,
    flatten: Callable[[Any], tuple[Any, Any]] | None = None,
    unflatten: Callable[[Any, Any], Any] | None = None,
) -> type:
    """Make the objects of a class containers, for all transforms and compiled functions.

    Parameters
    ----------
    cls : type
        The class itself; subclasses are registered on their own.
    flatten : callable, optional
        Takes an object, returns ``(children, rest)``: a sequence of the parts that may hold leaves,
        or a dict of them by name, and everything else, which is compared by ``==``.
    unflatten : callable, optional
        Takes ``(rest, children)``, the children in a tuple or a dict as `flatten` gave them, and
        returns an object. They may be any objects: a transform puts its own there.

    Without the two, the children are the attributes of the object, and other objects are made
    without calling ``__init__``.

    Returns
    -------
    type
        `cls`, so that this is a decorator, too.

    Raises
    ------
    ArgumentError
        If only one of the two functions is given.

    Examples
    --------
    >>> import chainrule as cr
    >>> @cr.tree.register
    ... class Line:
    ...     def __init__(self, slope, offset):
    ...         self.slope, self.offset = slope, offset
    >>> gradient = cr.grad(lambda line: line.slope * 2.0 + line.offset)(Line(3.0, 1.0))
    >>> gradient.slope, gradient.offset
    (2.0, 1.0)

    With a setting that is no number:

    >>> class Power:
    ...     def __init__(self, factor, name):
    ...         self.factor, self.name = factor, name
    >>> _ = cr.tree.register(
    ...     Power, lambda p: ([p.factor], p.name), lambda name, children: Power(*children, name)
    ... )
    >>> cr.grad(lambda p: p.factor**2)(Power(3.0, "area")).factor
    6.0
    """
    if (flatten is None) != (unflatten is None):
        raise ArgumentError("tree.register: give both flatten= and unflatten=, or neither")
    if flatten is None or unflatten is None:

        def restored(_: Any, children: Any) -> Any:
            made: Any = object.__new__(cls)
            for name, part in children.items():
                object.__setattr__(made, name, part)
            return made

        found = pytree.NodeType(lambda node: (dict(vars(node)), None), restored)
    else:
        found = pytree.NodeType(flatten, unflatten)
    pytree.register(cls, found)
    return cls


def ravel(tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the numbers of a tree as one vector, as SciPy wants them, and the way back.

    Parameters
    ----------
    tree : containers of Tensors, arrays and floats
        None stays None.

    Returns
    -------
    vector : Tensor if a leaf is a Tensor, else ndarray, shape (n,)
        The elements of all leaves, in C order, of the dtype that they are promoted to.
    unravel : callable
        Takes a vector of n elements, an array or a Tensor, and returns a tree of the shapes of
        `tree`. From an array its leaves are of the kinds and dtypes of `tree`; from a Tensor they
        are Tensors, through which gradients flow.

    Raises
    ------
    DTypeError
        If a leaf isn't floating or complex.
    ShapeError
        If a vector that is to be unravelled has another size.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> vector, unravel = ravel({"w": np.ones((2, 2)), "b": 3.0})
    >>> vector
    array([1., 1., 1., 1., 3.])
    >>> cr.grad(lambda v: unravel(v)["b"] ** 2)(vector)
    array([0., 0., 0., 0., 6.])
    >>> unravel(2 * vector)
    {'w': array([[2., 2.],
           [2., 2.]]), 'b': 6.0}
    """
    given = [(path, leaf) for path, leaf in pytree.leaves(tree) if leaf is not None]
    parts = [_part(path, leaf) for path, leaf in given]
    shapes, dtypes = [x.shape for x in parts], [x.dtype for x in parts]
    kinds = [kind_of(leaf) for _, leaf in given]
    counts = [x.numel() for x in parts]
    dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    rows = [reshape(x, (-1,)).to(dtype) for x in parts]
    joined = cat(rows) if rows else make(np.zeros(0), None)
    common = common_kind([leaf for _, leaf in given] or [np.zeros(0)])

    def unravel(vector: Any) -> Any:
        given_array = is_array(vector) or isinstance(vector, Tensor)
        flat = tensor_of(vector if given_array else np.asarray(vector))
        if flat.shape != (sum(counts),):
            raise ShapeError(
                f"tree.ravel: unravel takes a vector of {sum(counts)} elements, got the shape "
                f"{list(flat.shape)}"
            )
        found, start = [], 0
        for shape, own, kind, count in zip(shapes, dtypes, kinds, counts, strict=True):
            part = reshape(flat[start : start + count], shape)
            start += count
            if isinstance(vector, Tensor):
                found.append(part)
            else:
                part = part.to(own) if part.dtype.kind == own.kind else part
                found.append(kind(part.clone()))
        return pytree.with_leaves(tree, found)

    return in_kind(common, joined), unravel


def _part(path: str, leaf: Any) -> Tensor:
    """Return a leaf as a tensor of floating or complex numbers."""
    x = tensor_of(values_of(leaf))
    if x.dtype.kind not in "fc":
        raise DTypeError(
            f"tree.ravel: the leaves must be floating or complex, got {type(leaf).__name__} "
            f"{x.dtype} at {path or 'the root'}: write 2.0 for 2"
        )
    return x
