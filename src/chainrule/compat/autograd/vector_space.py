"""Vector spaces: zeros, bases, sums and products of values of the form of an example."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.tensor import Tensor
from chainrule.compat.autograd.tracer import check_array_type, conjugate, getval
from chainrule.errors import ArgumentTypeError

__all__ = ["VSpace", "vspace"]

_VALUES = (np.ndarray, np.generic, float, complex, ArrayProxy)


class VSpace:
    """The vector space of a value: an array, a number, or dicts, lists, tuples of them.

    The dimension is `size`; complex numbers count twice, as the space is over the real numbers.
    """

    @classmethod
    def register(cls, value_type: type, vspace_maker: Any = None) -> None:
        """Accept a subclass of NumPy's array: its vector space is that of arrays."""
        check_array_type(value_type)

    def __init__(self, value: Any) -> None:
        self._example = pytree.map_leaves(value, getval)
        found = [leaf for _, leaf in pytree.leaves(self._example)]
        for leaf in found:
            if not isinstance(leaf, _VALUES):
                raise ArgumentTypeError(
                    f"Can't find vector space for value {leaf} of type {type(leaf)}: expected "
                    "arrays, floats or complex numbers, or containers of them"
                )
        numbers = [leaf if hasattr(leaf, "dtype") else np.asarray(leaf) for leaf in found]
        self._forms = [(leaf.shape, leaf.dtype) for leaf in numbers]
        self.iscomplex = any([dtype.kind == "c" for _, dtype in self._forms])

    @property
    def shape(self) -> Any:
        """The shape of an array; of a container, the vector spaces of its parts."""
        if pytree.children(self._example) is None:
            return self._forms[0][0]
        example = self._example
        parts = [vspace(part) for _, part in pytree.children(example) or ()]
        if isinstance(example, dict):
            return dict(zip(example, parts, strict=True))
        return parts

    @property
    def dtype(self) -> Any:
        """The dtype of an array."""
        return self._forms[0][1]

    @property
    def ndim(self) -> int:
        """The number of dimensions of an array."""
        return len(self._forms[0][0])

    @property
    def size(self) -> int:
        """The real dimension."""
        return sum(math.prod(s) * (2 if t.kind == "c" else 1) for s, t in self._forms)

    def _map(self, function: Callable[..., Any], *values: Any) -> Any:
        others = [iter([leaf for _, leaf in pytree.leaves(value)]) for value in values]
        return pytree.map_leaves(self._example, lambda x: function(x, *[next(o) for o in others]))

    def _fill(self, make: Callable[[Any, Any], Any]) -> Any:
        return pytree.with_leaves(self._example, [make(*form) for form in self._forms])

    def zeros(self) -> Any:
        """Return the zero vector."""
        return self._fill(np.zeros)

    def ones(self) -> Any:
        """Return ones, of complex numbers 1 + 1j."""
        unit = {"c": 1 + 1j}
        return self._fill(lambda shape, dtype: np.full(shape, unit.get(dtype.kind, 1), dtype))

    def randn(self) -> Any:
        """Return a vector of standard normal numbers."""

        def draw(shape: Any, dtype: Any) -> Any:
            real = np.asarray(np.random.randn(*shape))
            drawn = real + 1j * np.random.randn(*shape) if dtype.kind == "c" else real
            return drawn.astype(dtype)

        return self._fill(draw)

    def standard_basis(self) -> Iterator[Any]:
        """Yield the unit vectors, of complex numbers also those times 1j."""
        for i, (shape, dtype) in enumerate(self._forms):
            for index in np.ndindex(*shape):
                for unit in (1, 1j) if dtype.kind == "c" else (1,):
                    leaves = [np.zeros(s, t) for s, t in self._forms]
                    leaves[i][index] = unit
                    yield pytree.with_leaves(self._example, leaves)

    def add(self, x: Any, y: Any) -> Any:
        """Return x + y."""
        return self._map(lambda _, a, b: a + b, x, y)

    def mut_add(self, x: Any, y: Any) -> Any:
        """Return x + y; y if `x` is None."""
        return self.add(self.zeros() if x is None else x, y)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """Return x times a number."""
        return self._map(lambda _, part: part * a, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """Return the sum of the products of x, conjugated, and y: its real part."""
        return sum(
            np.real(np.sum(conjugate(a) * b))
            for (_, a), (_, b) in zip(pytree.leaves(x), pytree.leaves(y), strict=True)
        )

    def covector(self, x: Any) -> Any:
        """Return x, conjugated."""
        return self._map(lambda _, part: conjugate(part), x)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VSpace) or self._forms != other._forms:
            return False
        pairs = pytree.zip_leaves(self._example, other._example)
        return not any(pytree.children(a) or pytree.children(b) for _, a, b in pairs)

    def __repr__(self) -> str:
        return f"VSpace({self._fill(lambda shape, dtype: f'{dtype}{list(shape)}')})"


def vspace(value: Any) -> VSpace:
    """Return the vector space of a value.

    Raises
    ------
    TypeError
        If it contains anything but arrays, floats and complex numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from chainrule.compat.autograd.extend import vspace
    >>> vspace({"w": np.ones(2), "b": 1.0}).zeros()
    {'w': array([0., 0.]), 'b': array(0.)}
    """
    return VSpace(value.detach() if isinstance(value, Tensor) else value)
