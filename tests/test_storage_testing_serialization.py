"""Methods and modules that scripts of PyTorch use: memory, `testing`, `serialization`, settings."""

from __future__ import annotations

import contextlib
import multiprocessing
import sys
from typing import Any

import numpy as np
import pytest

import chainrule as cr


def test_resizing_and_replacing_memory_follow_pytorch() -> None:
    torch = pytest.importorskip("torch")

    def program(m: Any) -> list[Any]:
        x = m.arange(6)
        found = [x.resize_(2, 2).tolist(), x.resize_((4,)).tolist()]
        found.append(x.resize_as_(m.zeros(2, 1)).tolist())
        x.resize_(5).fill_(7)
        found.append(x.tolist())
        y = m.zeros(3)
        found += [y.set_(m.ones(2)).tolist(), y.shape == (2,), y.set_().numel()]
        found.append(m.tensor([1.0, 4.0]).apply_(lambda v: v * 2).tolist())
        found.append(m.tensor([[1.0, 4.0]]).map_(m.tensor([[2.0, 3.0]]), max).tolist())
        return found

    assert program(cr) == program(torch)


@pytest.mark.parametrize("name", ["resize_", "apply_", "map_"])
def test_a_leaf_that_requires_grad_is_refused(name: str) -> None:
    x = cr.ones(2, requires_grad=True)
    args: dict[str, tuple] = {"resize_": (3,), "apply_": (abs,), "map_": (cr.ones(2), max)}
    with pytest.raises(cr.AutogradError, match=f"{name}: .* say x.data"):
        getattr(x, name)(*args[name])
    assert x.tolist() == [1, 1]


def _increment(x: cr.Tensor) -> None:
    x.add_(1)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_forked_processes_write_to_shared_memory() -> None:
    x = cr.ones(2, 3)
    assert not x.is_shared()
    x.share_memory_()
    assert x.is_shared()
    assert x[0].is_shared()
    assert not x.clone().is_shared()
    process = multiprocessing.get_context("fork").Process(target=_increment, args=(x,))
    process.start()
    process.join()
    assert x.tolist() == [[2, 2, 2]] * 2
    net = cr.nn.Linear(2, 2)
    assert all(p.is_shared() for p in net.share_memory().parameters())
    assert net.weight.requires_grad
    assert cr.ones(1).pin_memory().is_pinned() is False


def test_assert_close_follows_pytorch() -> None:
    torch = pytest.importorskip("torch")
    cases: list[tuple[Any, Any, dict[str, Any]]] = [
        ([1.0, 2.0], [1.0, 2.0 + 1e-6], {}),
        ([1.0, 2.0], [1.0, 2.1], {}),
        ([1.0, 2.0], [1.0, 2.1], {"rtol": 0.1, "atol": 0}),
        ([1.0, float("nan")], [1.0, float("nan")], {}),
        ([1.0, float("nan")], [1.0, float("nan")], {"equal_nan": True}),
        ([1.0, float("inf")], [1.0, float("inf")], {}),
        ([1, 2], [1, 3], {}),
        ([1, 2], [1, 2], {}),
        ([1, 2], [1.0, 2.0], {}),
        ([1, 2], [1.0, 2.0], {"check_dtype": False}),
        ([1.0], [1.0, 2.0], {}),
    ]
    for a, b, kwargs in cases:
        passed = []
        for m in (cr, torch):
            try:
                m.testing.assert_close({"x": [m.tensor(a)]}, {"x": [m.tensor(b)]}, **kwargs)
                passed.append(True)
            except AssertionError:
                passed.append(False)
        assert passed[0] == passed[1], (a, b, kwargs)


@pytest.mark.parametrize(
    ("actual", "expected", "kwargs", "text"),
    [
        (cr.ones(3), cr.tensor([1, 2, 1.0]), {}, r"are not close!.*1 / 3 \(33.3%\)"),
        ([cr.ones(1)], [cr.ones(1), 2], {}, "length of the sequences mismatch: 1 != 2"),
        ({"a": 1}, {"b": 1}, {}, "keys of the mappings"),
        ([{"a": 1}], [{"a": 2}], {}, r"Scalars are not close!.*item \[0\]\['a'\]"),
        (1, 2, {"msg": "mine"}, "^mine$"),
        (1, 2, {"msg": lambda text: f"<{text[:7]}>"}, "^<Scalars>$"),
    ],
)
def test_assert_close_tells_the_difference(
    actual: Any, expected: Any, kwargs: dict, text: str
) -> None:
    with pytest.raises(AssertionError, match=f"(?s){text}"):
        cr.testing.assert_close(actual, expected, **kwargs)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
@pytest.mark.filterwarnings("ignore")
def test_assert_allclose_follows_pytorch(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    ones = np.ones(2, dtype)
    for off in (0.0, 5e-9, 4e-6, 5e-5, 8e-4, 0.1, 1.0):
        for expected in ((1 + off, 1), np.array([1 + off, 1]), np.array([1 + off, 1], np.float32)):
            passed = []
            for lib in (cr, torch):
                given = lib.tensor(expected) if isinstance(expected, np.ndarray) else expected
                with contextlib.suppress(AssertionError):
                    lib.testing.assert_allclose(lib.tensor(ones), given)
                    passed.append(lib)
            if dtype != "int64" or isinstance(expected, np.ndarray):  # PyTorch cuts off 1.1
                assert passed in ([], [cr, torch]), (off, expected)
    cr.testing.assert_allclose(np.nan, cr.tensor(np.nan))
    with pytest.raises(AssertionError, match="much"):
        cr.testing.assert_allclose([1], [2], msg="much")


def test_assert_close_takes_both_tolerances() -> None:
    with pytest.raises(ValueError, match="both"):
        cr.testing.assert_close(1, 1, rtol=1)


def test_safe_globals_are_listed() -> None:
    tools = cr.serialization
    with tools.safe_globals([set]):
        assert tools.get_safe_globals() == [set]
    tools.add_safe_globals([dict])
    tools.add_safe_globals([dict])
    assert tools.get_safe_globals() == [dict]
    tools.clear_safe_globals()
    assert tools.get_safe_globals() == []
    assert tools.load is cr.load


def test_bfloat16_can_be_named_and_not_be_used() -> None:
    kinds = {"float32": cr.float32, "bfloat16": cr.bfloat16}
    assert repr(kinds["bfloat16"]) == "torch.bfloat16"
    uses = [
        lambda: cr.zeros(2, dtype=cr.bfloat16),
        lambda: cr.ones(2).to(cr.bfloat16),
        lambda: cr.nn.Linear(1, 1).to(cr.bfloat16),
        lambda: cr.tensor([1.0], dtype=cr.bfloat16),
    ]
    for use in uses:
        with pytest.raises(cr.DTypeError, match="bfloat16: NumPy has no such dtype"):
            use()
    with pytest.warns(UserWarning, match="half"), cr.autocast("cpu", dtype=cr.bfloat16):
        pass


def test_settings_that_have_one_value() -> None:
    assert cr.are_deterministic_algorithms_enabled()
    assert cr.get_float32_matmul_precision() == "highest"
    cr.set_deterministic_debug_mode("error")
    cr.set_num_interop_threads(2)
    cr.set_warn_always(True)
    assert (cr.get_deterministic_debug_mode(), cr.get_num_interop_threads()) == (2, 1)
    assert not cr.set_flush_denormal(True)
    assert not cr.is_warn_always_enabled()
    assert cr.get_default_device() == cr.device("cpu")
    cr.set_default_device("cpu")
    with pytest.raises(cr.DeviceError, match="there is no GPU"):
        cr.set_default_device("cuda")
    x = cr.ones(1, 2, 3, 3).to(memory_format=cr.channels_last)
    assert x.contiguous(memory_format=cr.contiguous_format).layout == cr.strided
    for name in ("mps", "xpu:0", "xla"):
        with pytest.raises(cr.DeviceError, match=r"on the CPU, .* say device\('cpu'\)"):
            cr.device(name)


def test_variables_under_their_former_module() -> None:
    from chainrule.autograd.variable import Variable

    assert isinstance(Variable(cr.ones(1)), Variable)
    assert np.asarray(Variable(cr.ones(1))).tolist() == [1]
