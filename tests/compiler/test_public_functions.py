"""Every public function, compiled: the same results as in eager mode, or an error with a reason.

The arguments are those of the examples in the docstrings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from helpers.compile_comparison import agree
from helpers.docstring_examples import FUNCTIONS, TITLES, calls_of

VALUES = "a value was asked for while the function was being compiled"
SHAPES = "shape .* depends on values, which a compiled function doesn't know"
STATE = "would run only once in a compiled function"
MEMORY = "where an array is in memory is not known"
RESHAPED = "reshaped a tensor from outside"

REFUSED: dict[str, str] = {
    "cr.allclose": VALUES,
    "cr.argwhere": SHAPES,
    "cr.as_strided": MEMORY,
    "cr.as_strided_scatter": MEMORY,
    "cr.bincount": SHAPES,
    "cr.detach_": "gave a tensor from outside .* a history of its own",
    "cr.equal": VALUES,
    "cr.get_rng_state": STATE,
    "cr.initial_seed": STATE,
    "cr.is_nonzero": VALUES,
    "cr.linalg.lstsq": SHAPES,
    "cr.manual_seed": STATE,
    "cr.masked_select": SHAPES,
    "cr.nn.functional.one_hot": SHAPES,
    "cr.nonzero": SHAPES,
    "cr.repeat_interleave": SHAPES,
    "cr.seed": STATE,
    "cr.set_rng_state": STATE,
    "cr.unique": SHAPES,
    "cr.unique_all": SHAPES,
    "cr.unique_consecutive": SHAPES,
    "cr.unique_counts": SHAPES,
    "cr.unique_inverse": SHAPES,
    "cr.unique_values": SHAPES,
    "cr.while_loop": "the backward pass can't go through a compiled while_loop",
}
"""Functions that can't be compiled, with their error messages."""

ELSEWHERE = {
    "cr.permute": "other methods",
    "cr.zero_": "other methods",
    "cr.autograd_backward": "test_conformance.py",
    "cr.autograd_grad": "test_conformance.py",
    "cr.jvp": "tracing/test_trace.py",
    **dict.fromkeys(
        [f"cr.{name}" for name in cr.transforms.__all__ if name != "jvp"],
        "test_gradients_jacobians.py",
    ),
    "cr.taylor": "test_taylor_mode.py",
    "cr.compile": "it compiles",
    "cr.export": "it compiles",
    "cr.profile": "it compiles",
    "cr.gradcheck": "takes functions",
    "cr.gradgradcheck": "takes functions",
    "cr.implicit_function": "takes functions",
    "cr.wrap": "takes functions",
    "cr.are_deterministic_algorithms_enabled": "of no tensors",
    "cr.clear_autocast_cache": "of no tensors",
    "cr.is_autocast_enabled": "of no tensors",
    "cr.get_default_device": "of no tensors",
    "cr.get_float32_matmul_precision": "of no tensors",
    "cr.get_default_dtype": "of no tensors",
    "cr.get_deterministic_debug_mode": "of no tensors",
    "cr.get_num_interop_threads": "of no tensors",
    "cr.is_warn_always_enabled": "of no tensors",
    "cr.set_default_dtype": "of no tensors",
    "cr.is_grad_enabled": "of no tensors",
    "cr.is_anomaly_enabled": "of no tensors",
    "cr.set_printoptions": "of no tensors",
    "cr.save": "needs the numbers, and says so",
    "cr.to_dlpack": "needs the memory, and says so",
}

TRACED_AGAIN = {
    **dict.fromkeys(
        [
            *("cr.autograd_function", "cr.graph", "cr.heatmap", "cr.inference_mode"),
            *("cr.once_differentiable", "cr.saved_report", "cr.sparse_coo_tensor"),
            *("cr.sparse_csr_tensor", "cr.summary"),
        ],
        "returns an object of its own",
    ),
    "cr.randn": "is given another generator at each call",
}


def _all_agree(function: Callable[..., Any], calls: list[Any], kept: bool = True) -> None:
    for args, kwargs in calls:
        agree(function, args, kwargs, kept=kept)


def check(
    function: Callable[..., Any], calls: list[Any], refused: str | None, kept: bool = True
) -> None:
    if refused is None:
        _all_agree(function, calls, kept)
        return
    with pytest.raises(cr.AutogradError, match=refused):
        _all_agree(function, calls)


def _marked(title: str) -> Any:
    unknown = pytest.mark.no_verify("its memory is not initialised")
    return pytest.param(title, marks=[unknown] * ("empty" in title))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("title", [*map(_marked, sorted(FUNCTIONS.keys() - ELSEWHERE.keys()))])
def test_functions(title: str) -> None:
    calls = calls_of(title)
    assert calls, "there is no example to take arguments from"
    check(FUNCTIONS[title], calls, REFUSED.get(title), kept=title not in TRACED_AGAIN)


# --- methods --------------------------------------------------------------------------------------

METHODS = [name for name in dir(cr.Tensor) if name[0] != "_" and callable(getattr(cr.Tensor, name))]


def calls_on_tensors(name: str) -> list[Any]:
    """Return how a function of this name is called with a tensor first, if there is one."""
    title = TITLES.get(name) or TITLES.get(name.removesuffix("_"))
    calls = [] if title is None else calls_of(title)
    return [call for call in calls if call[0] and isinstance(call[0][0], cr.Tensor)]


def refusal(name: str) -> str | None:
    if name in ("squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_"):
        return RESHAPED
    title = TITLES.get(name) or TITLES.get(name.removesuffix("_"))
    if name == "repeat":  # of tensors it is PyTorch's, which repeats the whole
        return None
    return REFUSED.get(title or "")


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in METHODS if calls_on_tensors(name)])
def test_methods_of_functions(name: str) -> None:
    def method(x: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, name)(*args, **kwargs)

    check(method, calls_on_tensors(name), refusal(name))


OTHER_METHODS: dict[str, Callable[[Any], Any]] = {
    "conversions": lambda x: [
        *(x.bool(), x.byte(), x.char(), x.short(), x.int(), x.long(), x.half(), x.float()),
        *(x.double(), x.cfloat(), x.cdouble(), x.type("torch.DoubleTensor"), x.type_as(x.double())),
        *(x.to(cr.float64), x.to("cpu"), x.cpu(), x.to(x.double()), x.to_device("cpu")),
        *(x.to_dense(), x.pin_memory() * 1, x.share_memory_() * 1),
    ],
    "shapes": lambda x: [
        *(x.expand(4, 2, 3), x.expand_as(x), x.permute(1, 0), x.view(3, 2), x.view(-1)),
        *(x.view_as(x), x.reshape_as(x), x.sum_to_size(1, 3), x.contiguous(), x.T, x.mT, x.H),
    ],
    "questions": lambda x: [
        *(x.dim(), x.ndim, x.ndimension(), x.nelement(), x.numel(), x.shape, x.size(0), x.dtype),
        *(x.element_size(), x.itemsize, x.nbytes, x.is_leaf, x.requires_grad, x.device, len(x)),
        *(x.is_floating_point(), x.is_contiguous(), x.grad, x.retains_grad, x.output_nr),
        *(x.is_pinned(), x.is_shared(), x.layout),
    ],
    "new ones": lambda x: [
        *(x.new_ones(2), x.new_zeros((2, 1)), x.new_full((2,), 3.0), x.new_tensor([1.0, 2.0])),
        x.new([1.0, 2.0]),
        *(x.new_empty((3,)).shape, x.new_empty_strided((2, 3), (1, 2)).shape),
    ],
    "writes": lambda x: [
        *(x.clone().copy_(x * 2), x.clone().zero_(), x.clone().fill_diagonal_(2.0)),
        *(x.clone().normal_(), x.clone().uniform_(), x.clone().exponential_()),
        *(x.clone().cauchy_(), x.clone().geometric_(0.5), x.clone().log_normal_()),
        x.clone().random_(10),
    ],
    "special functions": lambda x: [
        *(x.igamma(x + 1), x.igammac(x + 1), x.polygamma(1), x.clone().polygamma_(1)),
        *(x.clone().igamma_(x), x.clone().igammac_(x)),
    ],
    "numpy": lambda x: [x.detach().numpy() * 2, np.sin(x.detach().numpy())],
    "operators": lambda x: [
        *(x + 1, 1 - x, x * 2.5, 2 / x, x // 2, x % 2, x**2, 2**x, x @ x.T, -x, +x, abs(x)),
        *(
            x == 1,
            x != 1,
            x < 1,
            x <= 1,
            x > 1,
            x >= 1,
            divmod(x, 2)[1],
            x[0],
            x[:, 1:],
            x[..., None],
        ),
        *(~(x > 1), (x > 1) & (x < 2), (x > 1) | (x < 2), (x > 1) ^ (x < 2)),
        *list(x),
    ],
    "items": lambda x: [x[[1, 0]], x[cr.tensor([0, 0])], x[:, cr.tensor([True, False, True])]],
}
IN_ONE_OF_THEM = """
    bool byte char short int long half float double cfloat cdouble type type_as to cpu to_device
    to_dense pin_memory share_memory_ is_pinned is_shared expand expand_as permute view view_as
    reshape_as sum_to_size contiguous dim ndimension nelement element_size is_contiguous new
    new_ones new_zeros new_full new_tensor new_empty new_empty_strided copy_ zero_
    fill_diagonal_ normal_ uniform_
    exponential_ cauchy_ geometric_ log_normal_ random_ igamma igammac polygamma polygamma_
    igamma_ igammac_ numpy
"""


@pytest.mark.parametrize("group", OTHER_METHODS)
def test_other_methods(group: str) -> None:
    x = cr.tensor([[0.5, 1.5, 2.5], [1.0, 0.25, 3.0]])
    if group == "questions":
        assert cr.compile(OTHER_METHODS[group])(x) == OTHER_METHODS[group](x)
    else:
        agree(OTHER_METHODS[group], (x,), {})


OUTSIDE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "item": (lambda x: x[0].item(), VALUES),
    "tolist": (lambda x: x.tolist(), VALUES),
    "bfloat16": (lambda x: x.bfloat16(), "bfloat16"),
    "cuda": (lambda x: x.cuda(), "CuPy|can't move arrays"),
    "to_sparse": (lambda x: x.to_sparse(), "depends on values"),
    "to_sparse_csr": (lambda x: x[None].to_sparse_csr(), "depends on values"),
    "resize_": (lambda x: x.clone().resize_(1), "t.data = x"),
    "resize_as_": (lambda x: x.clone().resize_as_(cr.ones(1)), "t.data = x"),
    "storage": (lambda x: x.storage()[0], VALUES),
    "untyped_storage": (lambda x: x.untyped_storage()[0], VALUES),
    "set_": (lambda x: x.clone().set_(cr.ones(1)), "t.data = x"),
    "apply_": (lambda x: x.clone().apply_(abs), VALUES),
    "map_": (lambda x: x.clone().map_(x, max), VALUES),
    "data_ptr": (lambda x: x.data_ptr(), MEMORY),
    "stride": (lambda x: x.stride(), MEMORY),
    "storage_offset": (lambda x: x.storage_offset(), MEMORY),
    "requires_grad_": (lambda x: x.requires_grad_().sum(), "a history of its own"),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_methods_that_are_refused(name: str) -> None:
    function, text = OUTSIDE[name]
    with pytest.raises((cr.AutogradError, TypeError, ValueError, RuntimeError), match=text):
        cr.compile(function)(cr.ones(2))


def test_every_method_is_in_a_test() -> None:
    tested = {*IN_ONE_OF_THEM.split(), *OUTSIDE, "backward", "retain_grad", "record_stream"}
    tested |= {"register_hook", "register_post_accumulate_grad_hook"}  # tracing/test_trace.py
    assert not [name for name in METHODS if not calls_on_tensors(name) and name not in tested]


def test_what_is_refused_is_public() -> None:
    assert REFUSED.keys() | ELSEWHERE.keys() <= FUNCTIONS.keys()


# --- cases without an example in a docstring ------------------------------------------------------

F = cr.nn.functional
SCORES = cr.tensor(np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32))
LABELS = cr.tensor([0, 2, -100, 1])

HARD: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cross_entropy, ignoring": (F.cross_entropy, (SCORES, LABELS)),
    "cross_entropy, of nothing": (F.cross_entropy, (SCORES, cr.full((4,), -100).long())),
    "cross_entropy, weighted": (
        lambda x, t: F.cross_entropy(x, t, cr.tensor([1.0, 2.0, 0.5]), label_smoothing=0.1),
        (SCORES, LABELS),
    ),
    "nll_loss": (
        lambda x, t: F.nll_loss(F.log_softmax(x, 1), t, reduction="sum"),
        (SCORES, LABELS),
    ),
    "embedding": (lambda i, t: F.embedding(i, t, padding_idx=1), (cr.tensor([0, 1, 1, 3]), SCORES)),
    "embedding, by frequency": (
        lambda i, t: F.embedding(i, t, scale_grad_by_freq=True),
        (cr.tensor([0, 1, 1, 3]), SCORES),
    ),
    "embedding_bag": (
        lambda i, o, t: F.embedding_bag(i, t, o),
        (cr.tensor([0, 1, 1, 3]), cr.tensor([0, 0, 3]), SCORES),
    ),
    "one_hot": (lambda i: F.one_hot(i, 4), (cr.tensor([0, 3]),)),
    "attention, causal": (
        lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True),
        (SCORES[None],),
    ),
    "attention, closed": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, m),
        (SCORES, cr.tensor([[True] * 4, [False] * 4, [True, False] * 2, [False, True] * 2])),
    ),
    "ctc_loss": (
        lambda x, t, n, m: F.ctc_loss(F.log_softmax(x, -1), t, n, m),
        (
            cr.tensor(np.random.default_rng(1).standard_normal((6, 2, 4)).astype(np.float32)),
            cr.tensor([[1, 1, 2], [3, 0, 0]]),
            cr.tensor([6, 4]),
            cr.tensor([3, 1]),
        ),
    ),
    "gaussian_nll_loss": (
        F.gaussian_nll_loss,
        (SCORES, SCORES + 1, (SCORES * 0).index_fill(0, cr.tensor([1]), 2.0)),
    ),
    "median, of some that are equal": (cr.median, (cr.tensor([1.0, 2.0, 2.0, 2.0, 3.0]),)),
    "median, of nan": (lambda x: (cr.median(x), cr.nanmedian(x)), (cr.tensor([1.0, cr.nan, 2.0]),)),
    "median, of ints": (cr.median, (cr.tensor([3, 1, 2, 2]),)),
    "median, of rows": (
        lambda x: (*cr.median(x, 1), *cr.nanmedian(x, 1)),
        (cr.tensor([[1.0, cr.nan, 2.0], [3.0, 1.0, 2.0]]),),
    ),
    "quantile": (lambda x, q: cr.quantile(x, q, 1), (SCORES, cr.tensor([0.25, 0.5]))),
    "nanquantile": (
        lambda x: cr.nanquantile(x, 0.3, 1),
        (cr.tensor([[1.0, cr.nan, 2.0], [3.0, 1.0, 2.0]]),),
    ),
    "mode": (lambda x: cr.mode(x, 0), (cr.tensor([[1.0, 2.0], [1.0, 3.0], [2.0, 3.0]]),)),
    "cummax": (lambda x: cr.cummax(x, 0), (cr.tensor([1.0, cr.nan, 3.0, 3.0]),)),
    "searchsorted": (
        lambda a, b: cr.searchsorted(a, b, right=True),
        (cr.tensor([[1.0, 2.0, 2.0], [0.0, 1.0, 5.0]]), cr.tensor([[2.0, 0.0], [9.0, 1.0]])),
    ),
    "repeat_interleave": (
        lambda x, n: cr.repeat_interleave(x, n, 0, output_size=5),
        (SCORES, cr.tensor([2, 0, 1, 2])),
    ),
    "masked_scatter": (
        cr.masked_scatter,
        (cr.zeros(2, 3), cr.tensor([True, False, True]), cr.arange(6.0)),
    ),
    "index_put": (
        lambda x, i, v: cr.index_put(x, (i,), v),
        (cr.zeros(4), cr.tensor([1, 3, 1]), cr.tensor([1.0, 2.0, 3.0])),
    ),
    "scatter, on one place": (
        lambda x, i, v: cr.scatter(x, 0, i, v),
        (cr.zeros(4), cr.tensor([1, 3, 1]), cr.tensor([1.0, 2.0, 3.0])),
    ),
    "written at indices": (
        lambda x, i, v: _written_at(x, i, v),
        (cr.zeros(4), cr.tensor([1, 3, 1]), cr.tensor([1.0, 2.0, 3.0])),
    ),
    "written at a mask": (
        lambda x, m: _written_at(x, m, 5.0),
        (cr.zeros(3), cr.tensor([True, False, True])),
    ),
    "scatter_reduce, mean": (
        lambda x, i, v: cr.scatter_reduce(x, 0, i, v, "mean", include_self=False),
        (cr.ones(4), cr.tensor([1, 3, 1]), cr.tensor([1.0, 2.0, 3.0])),
    ),
    "x[i], of a number that is not known": (
        lambda x, i: x[i] * x[0, i],
        (SCORES[:3], cr.tensor(2)),
    ),
    "histc": (lambda x: cr.histc(x, 4, -1, 1), (SCORES,)),
    "grid_sample": (
        lambda x, g: F.grid_sample(x, g),
        (SCORES.reshape(1, 1, 3, 4), cr.tensor([[[[0.1, -0.5], [2.0, 0.3]]]])),
    ),
    "max_pool1d, with indices": (
        lambda x: F.max_pool1d(x, 2, return_indices=True),
        (SCORES.reshape(2, 6),),
    ),
    "max_unpool1d": (
        lambda x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2),
        (SCORES.reshape(1, 2, 6),),
    ),
    "sgn_ of complex numbers": (lambda x: x.sgn_(), (cr.tensor([3 + 4j, 0]),)),
    "relu of truth values": (cr.relu, (cr.tensor([True, False]),)),
    "where, with nan": (
        lambda x: cr.where(x > 1, x.log(), 0.0),
        (cr.tensor([-1.0, 2.0], dtype=cr.float64),),
    ),
}


def _written_at(x: Any, key: Any, value: Any) -> Any:
    y = x.clone()
    y[key] = value
    return y * 2


@pytest.mark.parametrize("name", HARD)
def test_hard_places(name: str) -> None:
    function, args = HARD[name]
    agree(function, args, {})
