"""Names that scripts of PyTorch use, and that make, choose or import what others do here."""

from __future__ import annotations

import abc
import copy
import pickle
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from helpers.torch_comparison import same_as_torch

# --- constructors of tensors ----------------------------------------------------------------------

TYPES = {
    "FloatTensor": cr.float32,
    "DoubleTensor": cr.float64,
    "HalfTensor": cr.float16,
    "ByteTensor": cr.uint8,
    "CharTensor": cr.int8,
    "ShortTensor": cr.int16,
    "IntTensor": cr.int32,
    "LongTensor": cr.int64,
    "BoolTensor": cr.bool,
}


@pytest.mark.parametrize(("name", "dtype"), TYPES.items())
def test_a_type_of_tensors_makes_them_and_stands_for_its_dtype(name: str, dtype: np.dtype) -> None:
    kind = getattr(cr, name)
    for data in ([[1, 0], [0, 1]], np.eye(2), cr.eye(2), [cr.tensor([1, 0]), [0, 1]]):
        made = kind(data)
        assert made.dtype == dtype
        assert made.tolist() == [[1, 0], [0, 1]]
    assert (kind(2, 3).shape, kind(2, 3).dtype) == ((2, 3), dtype)
    assert kind().shape == (0,)
    assert isinstance(made, kind)
    other = cr.tensor([1.0], dtype=cr.float32 if dtype != cr.float32 else cr.float64)
    assert not isinstance(other, kind)
    assert other.type(kind).dtype == other.type(f"torch.{name}").dtype == dtype
    assert cr.ones(2, dtype=kind).dtype == dtype
    assert made.type() == f"torch.{name}"


def test_tensor_makes_one_of_the_default_dtype() -> None:
    assert cr.Tensor([1, 2]).dtype == cr.float32
    assert cr.Tensor(2, np.int64(3)).shape == (2, 3)
    assert isinstance(cr.Tensor([1, 2]), cr.Tensor)
    cr.set_default_dtype(cr.float64)
    try:
        assert cr.Tensor([1, 2]).dtype == cr.float64
    finally:
        cr.set_default_dtype(cr.float32)


def test_tensor_of_a_tensor_is_a_view_of_it() -> None:
    x = cr.ones(2, requires_grad=True)
    for y in (cr.Tensor(x), cr.FloatTensor(x)):
        assert y.data_ptr() == x.data_ptr()
        assert cr.autograd_grad((2 * y).sum(), x)[0].tolist() == [2, 2]
    assert cr.Tensor(cr.tensor([1, 2])).dtype == cr.int64


def test_memory_formats_and_layouts_are_accepted() -> None:
    x = cr.ones(2)
    for method in ("half", "float", "double", "cfloat", "int", "long", "bool"):
        assert getattr(x, method)(memory_format=cr.preserve_format).shape == (2,)
    drawn = cr.normal(1.0, 0.0, (2,), layout=cr.strided, pin_memory=False, device="cpu")
    assert drawn.tolist() == [1.0, 1.0]


def test_a_size_is_a_shape_and_a_tuple_is_values() -> None:
    x = cr.ones(2, 3)
    for shape in (x.shape, x.size()):
        assert cr.Tensor(shape).shape == (2, 3)
        assert cr.LongTensor(shape).shape == (2, 3)
    assert cr.Tensor((2, 3)).tolist() == [2.0, 3.0]
    assert cr.Tensor((True, False)).tolist() == [1.0, 0.0]
    assert cr.Tensor(cr.Size([4])).shape == (4,)


def test_a_size_is_a_tuple_that_counts() -> None:
    size = cr.ones(2, 3).shape
    assert size.numel() == 6
    assert cr.ones(()).shape.numel() == 1
    assert (isinstance(size, tuple), size, size[1:]) == (True, (2, 3), (3,))
    assert isinstance((2, 3), cr.Size)
    assert not isinstance([2, 3], cr.Size)
    for copied in (copy.deepcopy(size), pickle.loads(pickle.dumps(size))):
        assert (type(copied), copied) == (cr.Size, (2, 3))
    assert cr.tree.leaves({"a": size}) == [2, 3]


@pytest.mark.parametrize("data", [(1.5, 2), (3.0,), ("a",)])
def test_tensor_refuses_what_may_be_a_shape_or_values(data: tuple) -> None:
    with pytest.raises(cr.ArgumentError, match=r"^Tensor: .* say "):
        cr.Tensor(*data)


def test_tensor_in_a_compiled_function() -> None:
    f = cr.compile(lambda x: x * cr.Tensor([1, 2]))
    for _ in range(3):
        assert f(cr.ones(2)).tolist() == [1, 2]


def test_variables_are_tensors_and_volatile_warns() -> None:
    with pytest.warns(UserWarning, match="no_grad"):
        x = cr.autograd.Variable(cr.ones(2), volatile=True)
    assert isinstance(x, cr.Tensor)
    assert isinstance(x.shape, cr.Size)


# --- devices and modules --------------------------------------------------------------------------


@pytest.mark.skipif(cr.cuda.is_available(), reason="of machines without a GPU")
def test_without_a_gpu_there_is_nothing_to_wait_for() -> None:
    assert cr.cuda.device_count() == cr.accelerator.device_count() == 0
    assert cr.cuda.memory_allocated() == cr.cuda.memory_reserved() == 0
    assert cr.accelerator.current_accelerator() is None
    assert not cr.accelerator.is_available()
    cr.manual_seed(3)
    before = cr.rand(3)
    cr.manual_seed(3)
    cr.cuda.manual_seed_all(4)  # seeds GPUs, as in PyTorch
    assert cr.rand(3).tolist() == before.tolist()
    cr.cuda.synchronize()
    cr.cuda.empty_cache()
    assert not cr.cuda.amp.GradScaler().is_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with cr.cuda.amp.autocast():
            pass


@pytest.mark.parametrize(
    "name",
    [
        *("accelerator", "amp", "backends.cuda", "backends.cudnn", "backends.mps", "cuda.amp"),
        *("distributed", "jit", "multiprocessing", "nn.parallel", "nn.modules.batchnorm"),
        *("nn.modules.sparse", "onnx", "hub", "utils.model_zoo", "utils.dlpack", "utils.hooks"),
        *("nn.common_types", "distributions.utils", "autograd.function"),
    ],
)
def test_modules_of_pytorch_are_imported(name: str) -> None:
    module = import_module(f"chainrule.{name}")
    found = cr
    for part in name.split("."):
        found = getattr(found, part)
    assert found is module


@pytest.mark.parametrize(
    "line",
    [
        "from torch.autograd.variable import Variable",
        "from torch.autograd.grad_mode import no_grad",
        "from torch.nn.modules.loss import _Loss, _WeightedLoss",
        "from torch.nn.modules.utils import _pair, _single, _triple",
        "from torch.nn.init import _calculate_fan_in_and_fan_out",
        "from torch.nn.utils.clip_grad import clip_grad_norm_",
        "from torch.nn.utils.stateless import functional_call",
        "from torch.optim.adamw import AdamW",
        "from torch.random import fork_rng, manual_seed",
        "from torch.utils.data._utils.collate import default_collate",
        "import torch.nn.utils.prune as prune",
        "import torch.utils.model_zoo as model_zoo",
        "import torch.multiprocessing as mp; mp.spawn",
        "from torch.distributions.utils import broadcast_all, logits_to_probs, lazy_property",
        "from torch.nn.common_types import _size_1_t, _size_2_t, _size_3_t",
        "from torch.nn.init import _calculate_correct_fan",
        "from torch.nn.modules.dropout import _DropoutNd",
        "from torch.nn.modules.linear import NonDynamicallyQuantizableLinear",
        "from torch.nn.modules.utils import _ntuple, _quadruple",
        "from torch.nn.parallel import DistributedDataParallel, data_parallel",
        "from torch.utils.hooks import RemovableHandle",
        "from torch.optim.optimizer import Optimizer, ParamsT",
        "from torch.backends.cuda import SDPBackend",
        "from torch.jit import Final",
        "import torch.multiprocessing; torch.multiprocessing.set_sharing_strategy('file_system')",
        "import torch._dynamo; torch._dynamo.config.suppress_errors = True",
        "import torch._inductor.config as config; config.coordinate_descent_tuning = True",
        "import torch; torch._dynamo.reset(); torch._dynamo.config.cache_size_limit = 64",
    ],
)
def test_lines_of_scripts_that_import(line: str) -> None:
    exec(line.replace("torch", "chainrule"), {})


def test_a_loss_of_ones_own() -> None:
    from chainrule.nn.modules.loss import _WeightedLoss

    class Weighted(_WeightedLoss):
        def forward(self, x: cr.Tensor, y: cr.Tensor) -> cr.Tensor:
            return nn.functional.cross_entropy(x, y, self.weight, reduction=self.reduction)

    loss = Weighted(cr.tensor([1.0, 2.0]), reduction="sum")
    x, y = cr.tensor([[0.5, 1.0]]), cr.tensor([1])
    assert loss(x, y).item() == nn.CrossEntropyLoss(loss.weight, reduction="sum")(x, y).item()
    assert list(loss.state_dict()) == ["weight"]
    assert Weighted(reduce=False).reduction == "none"


def test_layers_are_in_pytorchs_modules() -> None:
    torch = pytest.importorskip("torch")
    theirs = {name: getattr(torch.nn, name) for name in nn.__all__ if hasattr(torch.nn, name)}
    for name, layer in theirs.items():
        if isinstance(layer, type) and layer.__module__.startswith("torch.nn.modules."):
            module = import_module(layer.__module__.replace("torch", "chainrule"))
            assert getattr(module, name) is getattr(nn, name), layer.__module__


def test_unknown_names_of_layers_raise() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'typo'"):
        nn.modules.typo  # noqa: B018


def test_nothing_is_downloaded() -> None:
    with pytest.raises(cr.ArgumentError, match=r"fetch https://a/b\.pth .*load_state_dict"):
        cr.hub.load_state_dict_from_url("https://a/b.pth", progress=True)
    with pytest.raises(AttributeError, match=r"copy the model's code"):
        cr.hub.load  # noqa: B018 - its absence is the point


def test_capsules_are_taken_back() -> None:
    x = cr.ones(3)
    y = cr.utils.dlpack.from_dlpack(cr.utils.dlpack.to_dlpack(x))
    assert y.data_ptr() == x.data_ptr()
    torch = pytest.importorskip("torch")
    assert torch.utils.dlpack.from_dlpack(cr.to_dlpack(x)).data_ptr() == x.data_ptr()
    assert cr.from_dlpack(torch.utils.dlpack.to_dlpack(torch.arange(3))).tolist() == [0, 1, 2]


@pytest.mark.parametrize("is_binary", [False, True])
def test_probabilities_and_logits_follow_pytorch(is_binary: bool) -> None:
    torch = pytest.importorskip("torch")
    from chainrule.distributions import utils

    for name in ("logits_to_probs", "probs_to_logits"):
        p = [[0.25, 0.75], [0.0, 1.0]]
        found = getattr(utils, name)(cr.tensor(p), is_binary)
        wanted = getattr(torch.distributions.utils, name)(torch.tensor(p), is_binary)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)


def _report(rank: int, folder: str, fails: bool) -> None:
    if fails and rank == 1:
        raise SystemExit(3)
    Path(folder, str(rank)).touch()


def test_spawn_calls_a_function_in_processes(tmp_path: Path) -> None:
    spawn = partial(cr.multiprocessing.spawn, start_method="fork")
    assert spawn(_report, (str(tmp_path), False), nprocs=2) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]
    with pytest.raises(RuntimeError, match="process 1 terminated with exit code 3"):
        spawn(_report, (str(tmp_path), True), nprocs=2)
    (process,) = spawn(_report, (str(tmp_path), False), nprocs=1, join=False)
    process.join()
    assert process.exitcode == 0


def test_settings_of_backends_can_be_set() -> None:
    cr.backends.cudnn.benchmark = True
    with cr.backends.cudnn.flags(enabled=True), cr.backends.cuda.sdp_kernel(enable_flash=False):
        cr.backends.cuda.enable_math_sdp(True)
    assert issubclass(cr.cuda.OutOfMemoryError, MemoryError)
    cr.backends.cuda.matmul.allow_tf32 = True
    assert not cr.backends.mps.is_available()
    assert not cr.distributed.is_initialized()


def test_script_compiles_functions_and_leaves_modules() -> None:
    net = nn.Linear(2, 1)
    assert cr.jit.script(net) is net
    scripted = cr.jit.script(cr.jit.ignore(double))
    assert scripted(cr.ones(2)).tolist() == [2, 2]
    assert not cr.jit.is_scripting()


def double(x: cr.Tensor) -> cr.Tensor:
    return x + x


def test_data_parallel_calls_its_module() -> None:
    net = nn.Linear(2, 1)
    parallel = nn.DataParallel(net)
    x = cr.ones(3, 2)
    assert parallel(x).tolist() == net(x).tolist()
    assert [*parallel.state_dict()] == ["module.weight", "module.bias"]
    for inputs in (x, (x,)):
        assert nn.parallel.data_parallel(net, inputs, [0, 1]).tolist() == net(x).tolist()
    with pytest.raises(TypeError, match="input"):
        nn.parallel.data_parallel(net, None)


# --- mixed precision ------------------------------------------------------------------------------


def test_autocast_warns_that_precision_stays() -> None:
    with pytest.warns(UserWarning, match="half"), cr.autocast("cpu"):
        assert cr.ones(2).sqrt().dtype == cr.float32

    @cr.amp.autocast("cpu", enabled=False)
    def f(x: cr.Tensor) -> cr.Tensor:
        return x * 2

    assert f(cr.ones(1)).item() == 2


def test_a_scaler_follows_pytorch() -> None:
    torch = pytest.importorskip("torch")

    def train(m) -> list:
        w = m.tensor([1.0, 2.0], requires_grad=True)
        optimizer = m.optim.SGD([w], lr=0.25)
        settings = {"init_scale": 8.0, "growth_interval": 2}
        scaler = m.amp.GradScaler("cpu", **settings)
        found = []
        for step in range(6):
            optimizer.zero_grad()
            factor = m.tensor([1.0, float("inf") if step == 3 else 0.5])
            scaler.scale((w * w * factor).sum()).backward()
            if step % 2:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            found.append((w.tolist(), scaler.get_scale()))
        state = scaler.state_dict()
        again = m.amp.GradScaler("cpu")
        again.load_state_dict(state)
        return [*found, again.state_dict(), again.get_scale()]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert train(cr) == train(torch)


def test_a_scaler_refuses_calls_out_of_order() -> None:
    w = cr.ones(1, requires_grad=True)
    w.sum().backward()
    optimizer = cr.optim.SGD([w], lr=0.1)
    scaler = cr.amp.GradScaler("cpu")
    with pytest.raises(cr.ArgumentError, match="no step"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(cr.ArgumentError, match="already"):
        scaler.unscale_(optimizer)


# --- torch.func -----------------------------------------------------------------------------------


def test_vjp_returns_a_tuple_for_one_primal() -> None:
    _, vjp_fn = cr.func.vjp(lambda x: x * x, cr.tensor([1.0, 2.0]))
    (found,) = vjp_fn(cr.ones(2))
    assert found.tolist() == [2, 4]
    _, vjp_fn, aux = cr.func.vjp(lambda x, y: (x * y, "aux"), 2.0, 3.0, has_aux=True)
    assert (vjp_fn(1.0), aux) == ((3.0, 2.0), "aux")


@pytest.mark.parametrize("argnums", [0, (0, 1)])
def test_the_hessian_of_a_vector_is_that_of_pytorch(argnums) -> None:
    torch = pytest.importorskip("torch")

    def f(m):
        return lambda x, y: m.stack([x[0] ** 2 * x[1] * y[0], x[1] ** 3 + y[1] * y[0], x.sum()])

    def flat(tree) -> list:
        return [t for part in tree for t in flat(part)] if isinstance(tree, tuple) else [tree]

    x, y = [1.0, 2.0], [3.0, 4.0]
    ours = cr.func.hessian(f(cr), argnums)(cr.tensor(x), cr.tensor(y))
    theirs = torch.func.hessian(f(torch), argnums)(torch.tensor(x), torch.tensor(y))
    for own, other in zip(flat(ours), flat(theirs), strict=True):
        np.testing.assert_allclose(own.numpy(), other.numpy(), rtol=1e-6)


# --- former arguments of losses -------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size_average", [None, True, False])
@pytest.mark.parametrize("reduce", [None, True, False])
@pytest.mark.parametrize("name", ["mse_loss", "binary_cross_entropy", "soft_margin_loss"])
def test_former_arguments_of_losses(name: str, reduce, size_average) -> None:
    torch = pytest.importorskip("torch")
    x, y = [0.25, 0.5, 0.75], [1.0, 0.0, 1.0]
    former = {"size_average": size_average, "reduce": reduce}
    found = getattr(nn.functional, name)(cr.tensor(x), cr.tensor(y), **former)
    wanted = getattr(torch.nn.functional, name)(torch.tensor(x), torch.tensor(y), **former)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)


CLASSES = [[0.5, 0.25, 0.25], [-0.5, 1.0, 0.5]], [2, 0]
BY_POSITION = {  # the tensors, and the arguments of PyTorch by position
    "cross_entropy": (*CLASSES, [(None, None, 2), (None, False, -100, None, "none", 0.1)]),
    "nll_loss": (*CLASSES, [(None, None, 2), (None, None, -100, None, "sum")]),
    "mse_loss": ([0.25, 2.0], [1.0, 0.5], [(False,), (None, None, "none"), (None, False)]),
    "smooth_l1_loss": ([0.25, 2.0], [1.0, 0.5], [(None, None, "sum", 0.5)]),
    "kl_div": ([-0.25, -2.0], [1.0, 0.5], [(None, None, "sum", True), (False,)]),
    "poisson_nll_loss": ([0.25, 2.0], [1.0, 0.5], [(False, True, False, 1e-3, None, "none")]),
    "binary_cross_entropy": ([0.25, 0.5], [1.0, 0.5], [(None, False), (None, None, None, "none")]),
    "binary_cross_entropy_with_logits": ([0.2, 2.0], [1.0, 0.5], [(None, None, None, "sum")]),
    "hinge_embedding_loss": ([0.25, 2.0], [1.0, -1.0], [(0.5, False), (0.5, None, None, "none")]),
    "soft_margin_loss": ([0.25, 2.0], [1.0, -1.0], [(False,), (None, None, "none")]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BY_POSITION)
def test_former_arguments_of_losses_by_position(name: str) -> None:
    torch = pytest.importorskip("torch")
    x, y, calls = BY_POSITION[name]
    for former in calls:
        found = getattr(nn.functional, name)(cr.tensor(x), cr.tensor(y), *former)
        wanted = getattr(torch.nn.functional, name)(torch.tensor(x), torch.tensor(y), *former)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)


def test_a_reduction_in_the_place_of_size_average_is_refused() -> None:
    with pytest.raises(TypeError, match=r"size_average is a bool: say reduction='sum'"):
        nn.functional.mse_loss(cr.ones(2), cr.ones(2), "sum")
    with pytest.raises(TypeError, match="positional"):
        nn.functional.soft_margin_loss(cr.ones(2), cr.ones(2), None, None, "sum", 1.0)


def test_a_loss_warns_of_broadcasting_where_it_is_called() -> None:
    for loss in (nn.functional.mse_loss, nn.functional.huber_loss):
        with pytest.warns(UserWarning, match="different") as warned:
            loss(cr.ones(2), cr.ones(1))
        assert warned[0].filename == __file__


# --- names and defaults of 2017 -------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4), (2, 3, 4, 1)])
def test_softmax_without_a_dimension_takes_that_of_pytorch(name: str, shape: tuple) -> None:
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).normal(size=shape)
    found = getattr(nn.functional, name)(cr.tensor(x)).numpy()
    wanted = getattr(torch.nn.functional, name)(torch.tensor(x)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["add", "sub", "add_", "sub_", "addcmul", "addcdiv_", "addcmul_"])
def test_a_factor_may_stand_before_the_tensors(name: str) -> None:
    torch = pytest.importorskip("torch")

    def program(m) -> list:
        x, y = m.tensor([1.0, 2.0], requires_grad=True), m.tensor([3.0, -4.0], requires_grad=True)
        tensors = (y, x + 1) if name.startswith("addc") else (y,)
        result = getattr(x.clone(), name)(0.5, *tensors)
        (result**2).sum().backward()
        return [t.detach().numpy() for t in (result, x.grad, y.grad)]

    for found, wanted in zip(program(cr), program(torch), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_choice_among_dimensions_warns() -> None:
    with pytest.warns(UserWarning, match="^softmax: .* say dim=") as warned:
        nn.functional.softmax(cr.ones(2, 2))
    assert warned[0].filename == __file__


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_spellings_of_arguments() -> None:
    torch = pytest.importorskip("torch")
    data = np.random.default_rng(0).standard_normal((1, 2, 3, 3))

    def results(lib) -> list:
        x = lib.tensor(data)
        layouts = (lib.contiguous_format, lib.channels_last)
        last = lib.tensor(data.transpose(0, 2, 3, 1).copy()).permute(0, 3, 1, 2)
        return [
            lib.softmax(x, 1, lib.float32),
            x.log_softmax(-1, lib.float32),
            lib.histogram(x.float())[0],
            x.clone(memory_format=lib.preserve_format),
            lib.nn.functional.upsample_nearest(x, scale_factor=2),
            lib.nn.functional.upsample_bilinear(x, 5),
            lib.tensor(
                [each.is_contiguous(memory_format=f) for each in (x, last) for f in layouts]
            ),
            lib.tensor(lib.device(type="cpu") == lib.device("cpu")),
        ]

    for found, wanted in zip(results(cr), results(torch), strict=True):
        assert f"torch.{found.dtype}" == str(wanted.dtype)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)


def test_new_takes_the_dtype() -> None:
    x = cr.ones(2, dtype=cr.float64)
    assert x.new([1, 2]).dtype == x.new(2, 3).dtype == cr.float64
    assert (x.new(2, 3).shape, x.new([1, 2]).tolist()) == ((2, 3), [1, 2])


def test_default_tensor_type() -> None:
    try:
        cr.set_default_tensor_type("torch.DoubleTensor")
        assert cr.tensor(1.0).dtype == cr.float64
        cr.set_default_tensor_type(cr.FloatTensor)
        assert cr.tensor(1.0).dtype == cr.float32
    finally:
        cr.set_default_dtype(cr.float32)
    with pytest.raises(cr.DTypeError):
        cr.set_default_tensor_type(cr.LongTensor)


def test_type_takes_the_class_of_tensors_as_the_default_dtype() -> None:
    assert (cr.arange(3) < 1).type(cr.Tensor).dtype == cr.float32


def test_a_compiled_module_has_the_attributes_of_the_module() -> None:
    net = nn.Sequential(nn.Linear(2, 1), nn.Dropout(0.5))
    compiled = cr.compile(net)
    assert next(iter(compiled.parameters())) is net[0].weight
    compiled.eval()
    assert not net.training
    assert not compiled.training
    assert compiled(cr.ones(1, 2)).tolist() == net(cr.ones(1, 2)).tolist()
    with pytest.raises(AttributeError, match="typo"):
        compiled.typo  # noqa: B018


def test_settings_without_effect() -> None:
    cr.use_deterministic_algorithms(True)
    cr.set_float32_matmul_precision("high")
    f = cr.compile(double, mode="reduce-overhead", fullgraph=True, dynamic=False)
    assert f(cr.ones(2)).tolist() == [2, 2]
    assert nn.utils.clip_grad_norm is nn.utils.clip_grad_norm_


# --- names of networks ----------------------------------------------------------------------------


def test_the_choice_of_a_kernel_for_attention_has_no_effect() -> None:
    from chainrule.nn.attention import SDPBackend, sdpa_kernel

    q = cr.randn(1, 3, 4)
    wanted = nn.functional.scaled_dot_product_attention(q, q, q)
    for backends in (SDPBackend.MATH, [SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION]):
        with nn.attention.sdpa_kernel(backends):
            found = nn.functional.scaled_dot_product_attention(q, q, q)
        assert (found == wanted).all()
    with pytest.raises(TypeError, match="expected SDPBackend"), sdpa_kernel("flash"):
        pass


def test_backends_of_attention_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.nn.attention.SDPBackend.__members__
    for name, backend in nn.attention.SDPBackend.__members__.items():
        assert int(theirs[name]) == backend


def test_functions_may_be_imported_from_modules_of_their_name() -> None:
    from chainrule.nn.utils.spectral_norm import SpectralNorm, spectral_norm
    from chainrule.nn.utils.weight_norm import WeightNorm, remove_weight_norm, weight_norm

    for apply in (weight_norm, nn.utils.weight_norm):  # the import must not hide the function
        layer = apply(nn.Linear(2, 3))
        (hook,) = layer._forward_pre_hooks.values()
        assert isinstance(hook, WeightNorm)
        assert hook.name == "weight"
        assert isinstance(remove_weight_norm(layer).weight, nn.Parameter)
        assert not layer._forward_pre_hooks
    (hook,) = spectral_norm(nn.Linear(2, 3))._forward_pre_hooks.values()
    assert isinstance(hook, SpectralNorm)


# --- sums of products, in the order of 2019 -------------------------------------------------------

FORMER = {
    "addmm": ((2, 2), (2, 3), (3, 2)),
    "addmv": ((2,), (2, 3), (3,)),
    "addr": ((2, 3), (2,), (3,)),
    "addbmm": ((2, 2), (4, 2, 3), (4, 3, 2)),
    "baddbmm": ((4, 2, 2), (4, 2, 3), (4, 3, 2)),
}


@pytest.mark.filterwarnings("ignore:.*is deprecated, as in PyTorch")
@pytest.mark.parametrize("name", FORMER)
def test_factors_before_their_tensors_warn_and_mean_what_they_do_in_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    arrays = [np.random.default_rng(len(s)).normal(size=s) for s in FORMER[name]]

    def program(m: Any) -> list[Any]:
        x, y, z = (m.tensor(array, requires_grad=True) for array in arrays)
        function = getattr(m, name)
        found = [function(2, x, 0.5, y, z), function(2, x, y, z)]
        found += [getattr(x, name)(2, 0.5, y, z), getattr(x, name)(2, y, z)]
        found.append(getattr(x.clone(), f"{name}_")(3, 2, y, z))
        sum((each**2).sum() for each in found).backward()
        return [*found, x.grad, y.grad, z.grad]

    with pytest.warns(DeprecationWarning, match=rf"say {name}\(input, .*, beta=2, alpha=0.5\)"):
        ours = program(cr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = program(torch)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12)


def test_four_tensors_are_no_former_order() -> None:
    x = cr.ones(2, 2)
    with pytest.raises(TypeError, match="addmm: expected input, mat1, mat2, and beta= and alpha="):
        cr.addmm(x, x, x, x)


# --- types, trees and the compiler's directives ---------------------------------------------------


def test_types_are_for_annotations_and_isinstance() -> None:
    from chainrule.types import Device, Number

    def scale(x: cr.Tensor, factor: Number, device: Device = None) -> cr.Tensor:
        return x * factor

    assert scale(cr.ones(1), 2).item() == 2
    assert isinstance(True, Number)
    assert not isinstance("2", Number)
    assert isinstance(cr.ones(1), cr.types.Tensor)


def test_code_knows_whether_it_is_compiled() -> None:
    found = []

    def f(x: cr.Tensor) -> cr.Tensor:
        found.append(cr.compiler.is_compiling())
        return x * 2 if cr.compiler.is_compiling() else x * 3

    assert cr.compile(f, verify=False)(cr.ones(1)).item() == 2  # it differs from f on purpose
    assert found[0]
    assert not cr.compiler.is_compiling()


def test_decorators_of_the_compiler_and_of_mixed_precision_return_the_function() -> None:
    def f(x: cr.Tensor) -> cr.Tensor:
        return x

    compiler, amp = cr.compiler, cr.amp
    for decorate in (
        compiler.disable,
        compiler.disable(recursive=False),
        compiler.allow_in_graph,
        compiler.assume_constant_result,
        amp.custom_fwd,
        amp.custom_fwd(device_type="cpu", cast_inputs=cr.float32),
        amp.custom_bwd,
        amp.custom_bwd(device_type="cpu"),
    ):
        assert decorate(f) is f


def test_private_names_of_trees_follow_pytorch() -> None:
    pytest.importorskip("torch")
    import torch.utils._pytree as theirs

    import chainrule.utils._pytree as ours

    tree = {"w": [1, 2.0], "b": (3, None)}
    for m in (theirs, ours):
        leaves, structure = m.tree_flatten(tree)
        assert leaves == m.tree_leaves(tree) == [1, 2.0, 3, None]
        assert m.tree_unflatten(leaves, structure) == tree
        doubled = m.tree_map_only(int, lambda n: 2 * n, tree)
        assert doubled == {"w": [2, 2.0], "b": (6, None)}
        assert m.tree_map(lambda n, k: (n, k), [1, 2], [3, 4]) == [(1, 3), (2, 4)]
        assert m.tree_any(lambda n: n is None, tree)
        assert not m.tree_all(lambda n: n is None, tree)
        assert m.tree_all_only(int, lambda n: n > 0, tree)
        assert not m.tree_any_only(float, lambda n: n > 2, tree)


def test_the_device_meta_is_the_cpu() -> None:
    layers = [nn.Linear(3, 2) for _ in range(4)]
    stacked, buffers = cr.func.stack_module_state(layers)
    base = copy.deepcopy(layers[0]).to("meta")
    x = cr.ones(5, 3, device="meta")

    def call(parameters: Any, buffers: Any, x: cr.Tensor) -> cr.Tensor:
        return cr.func.functional_call(base, (parameters, buffers), (x,))

    found = cr.vmap(call, (0, 0, None))(stacked, buffers, x)
    assert cr.allclose(found, cr.stack([layer(x) for layer in layers]))
    assert x.to("meta").device == cr.device("meta") == cr.device("cpu")
    with cr.device("meta"):
        module = nn.Linear(2, 2)
    assert module.to_empty(device="cpu") is module


def test_modules_of_functions_and_of_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert import_module("chainrule.functional").einsum is cr.einsum
    assert import_module("chainrule.autograd.profiler").profile is cr.profiler.profile
    check = cr.autograd.gradcheck
    module = import_module("chainrule.autograd.gradcheck")
    monkeypatch.delitem(vars(cr.autograd), "gradcheck")  # the import set it
    assert module.gradcheck is check is cr.autograd.gradcheck


def test_functions_of_lists_of_tensors_as_in_pytorch() -> None:
    def program(lib):
        a, b = [[lib.tensor(x) * n for n in (1.0, 2.0)] for x in ([3.0, 4.0], [5.0, 0.5])]
        lib._foreach_addcdiv_(a, b, b, [1.0, 2.0])
        lib._foreach_lerp_(a, b, 0.25)
        lib._foreach_maximum_(a, b)
        found = [lib._foreach_sub(a, b, alpha=2), lib._foreach_pow(2.0, b), lib._foreach_norm(b)]
        found += [lib._foreach_mul(a, lib.tensor(2.0)), lib._foreach_addcmul(a, b, b, value=3)]
        found += [lib._foreach_addcdiv(a, b, b, scalars=[2, 3]), lib._foreach_add(a, scalar=2)]
        found += [lib._foreach_norm(b, ord=1, dtype=lib.float64)]
        return [x for each in (a, *found) for x in each]

    same_as_torch(program)
    with pytest.raises(RuntimeError, match="same number of tensors, got 1 and 2"):
        cr._foreach_add([cr.ones(1)], [1, 2])
    with pytest.raises(AttributeError, match="_foreach_nothing"):
        cr._foreach_nothing  # noqa: B018


def test_assertions_of_scripts() -> None:
    cr._assert(True, "fine")
    with pytest.raises(AssertionError, match="wrong"):
        cr._assert(False, "wrong")
    with pytest.raises(RuntimeError, match="late"):
        cr._check(cr.tensor(False), lambda: "late")


def test_a_storage_is_the_memory_of_a_tensor() -> None:
    x = cr.tensor([[4.0, 1.0], [5.0, 3.0]])
    memory = x[1].storage()
    memory[0] = 2.0
    assert (list(memory), x[0, 0].item()) == ([2, 1, 5, 3], 2)
    assert memory.data_ptr() == x.t().untyped_storage().data_ptr() == x.data_ptr()
    assert (len(memory), memory.size(), memory.element_size(), memory.nbytes()) == (4, 4, 4, 16)
    assert (x.untyped_storage().size(), memory[1:3].tolist()) == (16, [1, 5])
    assert repr(memory).endswith("[Storage of float32, of size 4]")
    w = cr.ones(2, requires_grad=True)
    y = (w * w).sum()
    w.storage()[0] = 3.0
    with pytest.raises(cr.AutogradError, match="modified by an inplace operation"):
        y.backward()


def test_parts_that_pytorch_lets_one_write_to() -> None:
    x = cr.arange(5)
    for parts in (x.unsafe_chunk(2), cr.unsafe_split(x, 3), x.unsafe_split_with_sizes([3, 2])):
        assert [part.tolist() for part in parts] == [[0, 1, 2], [3, 4]]


def test_names_of_the_script_compiler() -> None:
    jit = cr.jit
    future = jit.fork(lambda x, y: x + y, cr.ones(1), y=1)
    assert jit.wait(future.then(lambda f: f.wait() * 2)).item() == 4
    assert (future.done(), jit.Future().done()) == (True, False)
    with pytest.raises(cr.ArgumentError, match="no result"):
        jit.Future().wait()
    net = nn.Linear(1, 1)
    assert jit.freeze(net) is jit.optimize_for_inference(net) is jit.trace_module(net, {}) is net
    assert jit.annotate(list[int], []) == [] == jit.Attribute([], list[int])
    jit.set_fusion_strategy([("STATIC", 1)])


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        ([1], list[int], True),
        ([1], list[str], False),
        ({"a": 1}, dict[str, int], True),
        ({"a": 1}, dict[int, int], False),
        ((1, "a"), tuple[int, str], True),
        ((1, 2), tuple[int, str], False),
        (None, int | None, True),
        (1, (int, str), True),
    ],
)
def test_types_with_those_of_their_elements(value: Any, kind: Any, wanted: bool) -> None:
    assert cr.jit.isinstance(value, kind) is wanted


@pytest.mark.parametrize("dtype", [cr.float32, cr.complex64, cr.int16, cr.uint8, cr.bool])
def test_random_tensors_for_tests(dtype: np.dtype) -> None:
    x = cr.testing.make_tensor(
        (30, 4), dtype=dtype, device="cpu", noncontiguous=True, exclude_zero=True
    )
    assert (x.shape, x.dtype, x.is_contiguous()) == ((30, 4), dtype, False)
    assert x.to(cr.complex64).abs().min() > 0
    y = cr.testing.make_tensor(50, dtype=cr.float64, device="cpu", low=2, requires_grad=True)
    assert y.requires_grad
    assert 2 <= y.min() <= y.max() < 9
    with pytest.raises(cr.ArgumentError, match="low must be less than high"):
        cr.testing.make_tensor(1, dtype=cr.float32, device="cpu", low=1, high=0)


def test_an_optimizer_may_have_an_abstract_class_before_it() -> None:
    class Base(abc.ABC, cr.optim.Optimizer):  # type: ignore[misc]
        pass

    class Own(cr.optim.SGD, Base):  # type: ignore[misc]
        pass

    assert Own([cr.ones(1, requires_grad=True)], lr=0.1).param_groups[0]["lr"] == 0.1


def test_an_empty_out_gets_the_shape_of_the_result() -> None:
    values, indices = cr.empty(0), cr.LongTensor()
    cr.max(cr.tensor([[1.0, 2.0]]), 1, out=(values, indices))
    assert (values.tolist(), indices.tolist()) == ([2], [1])
    with pytest.raises(cr.DTypeError, match="float32 can't be cast to that of `out`"):
        cr.add(cr.ones(2), 1, out=cr.LongTensor())


def test_functions_as_attributes_of_modules_are_no_methods() -> None:
    class Net(nn.Module):
        activation = cr.tanh
        product = nn.functional.linear

        def forward(self, x: cr.Tensor) -> cr.Tensor:
            return self.activation(self.product(x, weight=cr.eye(2)))

    assert Net()(cr.zeros(1, 2)).tolist() == [[0, 0]]


def test_folders_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cr.hub, "_folder", [])
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert cr.hub.get_dir() == str(tmp_path / "hub")
    cr.hub.set_dir(tmp_path / "other")
    assert cr.hub.get_dir() == str(tmp_path / "other")
    with pytest.raises(cr.ArgumentError, match="nothing is downloaded"):
        cr.hub.download_url_to_file("https://a/b.pth", "b.pth")
    assert not cr.onnx.is_in_onnx_export()
    assert cr.torch is cr
