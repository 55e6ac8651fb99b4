"""The class of namespaces, and extensions that several namespaces share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from chainrule.errors import MissingExtraError

Array = Any


class NamespaceDefaults:
    """Extensions of which most namespaces have the same."""

    repeats = False  # whether `run_forward` and `run_vjp` know calls that have run before
    waits = False  # whether looking at a value waits for a device, so that it should be avoided

    def reshaped_view(self, x: Array, shape: tuple[int, ...]) -> Array:
        """Return a view of another shape; raise ValueError if there is none."""
        return x.reshape(shape, copy=False)

    def differs_in_order(self, like: Array, array: Array) -> bool:
        """Tell whether an array is not in C order, and another is; devices don't care."""
        return False

    def write(self, out: Array, key: Any, value: Array) -> None:
        """Assign ``out[key] = value``."""
        out[key] = value

    def add_in_place(self, out: Array, key: Any, value: Array) -> bool:
        """Add `value` to an array at `key`, accumulating repeated indices; return whether it is."""
        return False

    def lock(self, x: Array) -> None:
        """Make an array read-only, of which several elements are one place in memory."""
        x.flags.writeable = False

    @property
    def unwatched(self) -> Callable[..., Any] | None:
        """What calls a function of the engine so that nothing watches the code that runs.

        None if nothing does. In a trace, watching takes as long as the code does.
        """
        return None

    def walk(self, run: Any, walk: Callable[[], None]) -> None:
        """Run a backward pass of cotangents of this namespace."""
        walk()

    def run_forward(
        self, primitive: Any, forward: Callable[..., Any], /, *arrays: Any, **settings: Any
    ) -> Any:
        """Return the result of a primitive, by its forward function for this namespace."""
        return forward(*arrays, **settings)

    def plus(self, x: Array, y: Array) -> Array:
        """Return the sum of two cotangents."""
        return x + y

    def run_vjp(self, plan: Any, g: Any, saved: tuple[Any, ...], settings: Any) -> Any:
        """Return the cotangents of the inputs, by the rules of a plan of `primitives`."""
        return plan.vjp(self, g, saved, settings)

    def number(self, x: Array, like: Array) -> Array:
        """Return a number, which is a 0-d array of NumPy's, as an operand beside an array."""
        return x


class Namespace(NamespaceDefaults):
    """An array namespace: the attributes of a module, and the extensions that rules may call.

    Extensions are `masked`, `index`, `index_add`, `add_at`, `maximum_at`, `minimum_at`,
    `assign_at`, `add_along_axis`, `diagonal` and `windows`, and those of `kernels`.
    """

    known = True  # whether elements are available; not for symbols
    records = False  # True in the namespace of tensors only
    loops: Any = None  # control flow, in a compiler's namespace only
    rule_kernels: Any = None  # kernels in place of rules, in NumPy's namespace only

    def __init__(self, module: ModuleType | Any, **extensions: Any) -> None:
        self._module = module
        self.__dict__.update(extensions)

    def spread(self, x: Array, shape: tuple[int, ...]) -> Array:
        """Return `x` broadcast to `shape`: a view, a copy or `x` itself."""
        return self.broadcast_to(x, shape)

    def is_contiguous(self, x: Array) -> bool | None:
        """Return whether an array is C-contiguous; None if unknown."""
        return bool(x.flags.c_contiguous)

    def lasting(self, key: Any, shape: tuple[int, ...]) -> Any:
        """Return the mask of assigned values that no later one overwrites; None if all survive."""
        from chainrule.kernels import gather_scatter

        return gather_scatter.lasting(key, shape)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        self.__dict__[name] = value  # cached for later look-ups
        return value

    def __repr__(self) -> str:
        return f"<namespace of {getattr(self._module, '__name__', self._module)}>"


class LazyModule:
    """A module that is imported at the first use of one of its functions."""

    def __init__(self, path: str, needs: str = "") -> None:
        self._path = path
        self._needs = needs

    def __getattr__(self, name: str) -> Any:
        try:
            module = import_module(self._path)
        except ImportError as error:
            if name.startswith("__"):  # inspect asks whether it wraps a function
                raise AttributeError(name) from error
            if not self._needs:
                raise
            raise MissingExtraError(f"{name} needs {self._needs}") from error
        value = self.__dict__[name] = getattr(module, name)
        return value


SCIPY = "SciPy, which is not installed: pip install 'chainrule[scipy]'"

KERNELS = {
    "convolution": ("convolve", "convolve_input", "convolve_weight"),
    "elementwise": (
        *(
            "sigmoid",
            "complex",
            "real_pairs",
            "complex_pairs",
            "exponent",
            "hypot",
            "logaddexp",
            "xlogy",
            "xlog1py",
            "spherical_bessel_j",
        ),
    ),
    "special": (
        *("erf", "erfc", "erfi", "erfcx", "erfinv", "dawsn", "ndtri", "log_ndtr", "rel_entr"),
        *("lgamma", "polygamma", "gamma", "beta", "betaln", "betainc", "gammainc", "gammaincc"),
        *("zeta", "expi", "exp1"),
        *("bessel_j", "bessel_y", "bessel_i", "bessel_ie", "bessel_k", "bessel_ke"),
    ),
    "incomplete": ("gammainc_moment", "betainc_moment"),
    "normal": ("normal_cdf",),
    "norms": ("p_norm",),
    "lu": ("lu_factor", "lu_solve", "lu_inverse", "lu_slogdet"),
    "matrices": ("check_phases", "cofactors", "inverses", "matrix_exp"),
    "pooling": ("max_pool", "pool_positions", "pool_pick", "pool_place"),
    "resampling": ("resample",),
    "scipy_fft": ("scipy_fft",),
    "scipy_linalg": ("scipy_linalg",),
}
"""Names of the extensions in `kernels`, by module."""


def kernels_of(xp: Any) -> dict[str, Any]:
    """Return the extensions in `kernels`, bound to an array module."""
    return {
        name: _lazy_kernel(xp, module, name) for module, names in KERNELS.items() for name in names
    }


def _lazy_kernel(xp: Any, module: str, name: str) -> Any:
    """Return a function of `kernels` whose module is imported at the first call."""
    function: Any = None

    def extension(*arrays: Array, **settings: Any) -> Array:
        nonlocal function
        if function is None:
            found = getattr(import_module(f"chainrule.kernels.{module}"), name)
            function = functools.partial(found, xp)
        return function(*arrays, **settings)

    return extension


def windows(as_strided: Any, x: Array, *, size: int, step: int, key: Any) -> Array:
    """Return a view of the windows of `size` elements of the last axis, `step` apart.

    `key` is the equivalent index, for namespaces without strides.
    """
    count = (x.shape[-1] - size) // step + 1
    stride = x.strides[-1]
    return as_strided(x, (*x.shape[:-1], count, size), (*x.strides[:-1], stride * step, stride))
