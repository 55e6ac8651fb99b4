"""``x[mask]`` of masks whose values are unknown: written back, or summed; refused otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.numpy as xp

BATCH = np.random.default_rng(0).normal(size=(3, 5, 2))
BATCH[1, 0, 0] = 0.0  # not selected, where the derivatives of log and sqrt are infinite
BATCH[2] = -np.abs(BATCH[2])  # none selected


def logarithms(x: Any) -> Any:
    y = x * 2.0
    m = y > 0
    y[m] = xp.log(y[m]) * x[0, 1] + 1
    return (y**2).sum()


def equal_masks(x: Any) -> Any:
    y = x * 2.0
    y[y > 0] = xp.sqrt(y[y > 0])
    return (y**2).sum()


def in_place(x: Any) -> Any:
    y = x * 2.0
    y[y > 0.1] *= xp.sin(x[0, 0])
    return (y**2).sum()


def sums(x: Any) -> Any:
    m = x > 0
    return xp.sum(xp.exp(x[m])) * 2 + x[m].sum() / (x[m] > 1).sum()


def rows(x: Any) -> Any:
    m = x[:, 0] > 0
    y = x * 1.0
    y[m] = y[m] ** 2 / (x[m] + 3)
    return (y**3).sum()


def mean_of_rows(x: Any) -> Any:
    m = x[:, 0] > -9
    return (x[m] ** 2).mean()


def another_array(x: Any) -> Any:
    m = x > 0
    z = xp.zeros((5, 2))
    z[m] = x[m] / (1 + x[m])
    return (z * x).sum()


@np.errstate(all="ignore")
def test_functions_of_a_selection_are_those_of_each_element() -> None:
    for f in (logarithms, equal_masks, in_place, sums, rows, mean_of_rows, another_array):
        each = np.stack([cr.grad(f)(x) for x in BATCH])
        compiled = cr.compile(cr.value_and_grad(f), backend="numpy")
        np.testing.assert_allclose([compiled(x)[0] for x in BATCH], [f(x) for x in BATCH])
        np.testing.assert_allclose([compiled(x)[1] for x in BATCH], each, err_msg=f.__name__)
        np.testing.assert_allclose(cr.vmap(cr.grad(f))(BATCH), each, err_msg=f.__name__)
    second = cr.hessian(logarithms)
    found = cr.compile(second, backend="numpy")(BATCH[0])
    np.testing.assert_allclose(found, second(BATCH[0]), atol=1e-12)


def changed_mask(x: Any) -> Any:
    m = x > 0
    y = x * 1.0
    part = y[m]
    m &= x > 1
    y[m] = part
    return y.sum()


def written_mask(x: Any) -> Any:
    m = x > 0
    y = x * 1.0
    part = y[m]
    m[0] = False
    y[m] = part
    return y.sum()


def other_result(x: Any) -> Any:
    whole, rest = np.divmod(x, 0.7)
    y = x * 1.0
    y[whole > 0.5] = x[rest > 0.5]
    return y.sum()


def other_factor(x: Any) -> Any:
    q, r = cr.linalg.qr(x[:2])
    y = x[:2] * 1.0
    y[q > 0] = x[:2][r > 0]
    return y.sum()


def other_zero(x: Any) -> Any:
    y = x * 1.0
    y[x / np.zeros(2) > 1] = x[x / -np.zeros(2) > 1]
    return y.sum()


def rows_by_elements(x: Any) -> Any:
    square = x[:2]
    m = square[:, 0] > 0
    return (square[m] * square[:, 0][m]).sum()


REFUSED = {
    "returned": lambda x: (x.sum(), x[x > 0])[1],
    "length": lambda x: x.sum() * len(x[x > 0]),
    "shape": lambda x: x.sum() * x[x > 0].shape[0],
    "loop": lambda x: sum(x[x > 0]),
    "sorted": lambda x: xp.sort(x[x > 0]).sum(),
    "maximum": lambda x: x[x > 0].max(),
    "array beside it": lambda x: (x[x > 0] * xp.arange(2.0)).sum(),
    "array before it": lambda x: (x + x[x > 0]).sum(),
    "product": lambda x: x[x > 0] @ x[x > 0],
    "other mask": lambda x: (x[x > 0] + x[x > 1]).sum(),
    "opposite mask": lambda x: (x[x > 0] + x[x < 0]).sum(),
    "mask of another shape": lambda x: x[x[:1] > 0].sum(),
    "changed mask": changed_mask,
    "written mask": written_mask,
    "other result of one operation": other_result,
    "other factor of a matrix": other_factor,
    "zero of another sign": other_zero,
    "rows by elements": rows_by_elements,
    "sum in another dtype": lambda x: x[x > 0].sum(dtype=np.float32),
    "reshaped": lambda x: x[x > 0].reshape(-1, 1).sum(),
    "in a list": lambda x: xp.array([x[x > 0], x[x > 0]]).sum(),
}


@np.errstate(all="ignore")
def test_what_needs_the_number_of_elements_is_refused() -> None:
    for f in REFUSED.values():
        with pytest.raises(cr.CompileError, match="has a shape that depends on values"):
            cr.compile(f, backend="numpy")(cr.tensor(BATCH[0]))
        with pytest.raises(cr.AutogradError, match="shape of the result depends on values"):
            cr.vmap(f)(cr.tensor(BATCH))
    with pytest.raises(cr.CompileError, match=r"log\(\).*shape that depends on.*where\(mask"):
        cr.compile(lambda x: cr.log(x[x > 0]).sum())(cr.tensor(BATCH[0]))


def test_two_draws_are_two_masks() -> None:
    f = cr.compile(lambda x: (x[cr.rand(2) > 0.5] * x[cr.rand(2) > 0.5]).sum(), backend="numpy")
    with pytest.raises(cr.CompileError, match="has a shape that depends on values"):
        f(cr.ones(2))


def test_known_masks_select_in_a_compiled_vmap() -> None:
    """A mask that the function makes has a number of elements, in a trace as well."""

    def made(x: Any) -> Any:
        return x[cr.tensor([True, False, True, True, False])].sigmoid().reshape(2, 3)

    def mapped(x: Any, mask: Any) -> Any:
        return x[mask] + 1

    wanted = np.stack([made(cr.tensor(x)).numpy() for x in BATCH])
    batch = cr.tensor(BATCH)
    for f in (cr.vmap(made), cr.vmap(cr.compile(made, backend="numpy"))):
        np.testing.assert_array_equal(f(batch), wanted)
        np.testing.assert_array_equal(cr.compile(f, backend="numpy")(batch), wanted)
    masks = cr.tensor([[True, False] * 2 + [False]] * 2 + [[True, True] + [False] * 3])
    for f in (cr.vmap(mapped), cr.compile(cr.vmap(mapped), backend="numpy")):
        with pytest.raises(cr.AutogradError, match=r"differ between examples: use where"):
            f(batch, masks)
