"""Missing names of PyTorch raise errors that say what to write instead."""

from __future__ import annotations

import functools
import pathlib
import re
from importlib import import_module

import pytest

import chainrule as cr
from chainrule.missing_names import _MENDS


@pytest.mark.parametrize(("module", "name"), _MENDS)
def test_a_listed_name_is_missing_and_its_error_names_a_mend(module: str, name: str) -> None:
    with pytest.raises(AttributeError, match=f"^module '{module}' has no attribute '{name}': "):
        getattr(import_module(module), name)


def test_other_names_raise_the_usual_error() -> None:
    for module in ("chainrule", "chainrule.nn", "chainrule.optim", "chainrule.cuda"):
        with pytest.raises(AttributeError, match=f"^module '{module}' has no attribute 'typo'$"):
            getattr(import_module(module), "typ" + "o")


NAMES_OF_R = (pathlib.Path(__file__).parent / "helpers" / "torch_for_r.txt").read_text().split()
WITHOUT_COUNTERPART = (  # quantized tensors, memory reports, threads and files of LibTorch
    "backends_ contrib_ cpu_ cuda_ get_install install_torch_ is_torch_ jit_ nn_aum_loss "
    "nn_contrib_ nnf_area_ nnf_contrib_ nnf_conv_tbc torch_cfloat32 torch_chalf "
    "torch_conv_tbc torch_dequantize torch_empty_strided torch_float8_ torch_get_num_interop "
    "torch_is_installed torch_ormqr torch_per_ torch_q torch_set_num_interop set_cpu_ "
    "torch_sparse_sampled torch_tensor_from_buffer torch_unsafe_"
)


def test_each_name_of_torch_for_r_leads_to_ours() -> None:
    lost = []
    for name in NAMES_OF_R:
        if hasattr(cr, name):
            continue
        with pytest.raises(AttributeError) as caught:
            getattr(cr, name)
        lacks, _, mend = str(caught.value).partition(": ")
        assert lacks == f"module 'chainrule' has no attribute {name!r}"
        for path in re.findall(r"\bcr\.([A-Za-z_0-9.]*\w)", mend):
            functools.reduce(getattr, path.split("."), cr)  # raises if it names what isn't there
        if not mend or "counterpart" in mend:
            lost.append(name)
    assert not [name for name in lost if not name.startswith(tuple(WITHOUT_COUNTERPART.split()))]
    assert len(lost) < len(NAMES_OF_R) / 10


@pytest.mark.parametrize(
    ("name", "mend"),
    [
        ("torch_tensor", "say cr.tensor"),
        ("torch_celu", "say cr.celu"),
        ("torch_fft_rfft", "say cr.fft.rfft"),
        ("linalg_inv", "say cr.linalg.inv"),
        ("nn_linear", "say cr.nn.Linear"),
        ("nn_bce_loss", "say cr.nn.BCELoss"),
        ("nnf_relu", "say cr.nn.functional.relu"),
        ("nn_utils_clip_grad_norm_", "say cr.nn.utils.clip_grad_norm_"),
        ("optim_adam", "say cr.optim.Adam"),
        ("lr_step", "say cr.optim.lr_scheduler.StepLR"),
        ("lr_one_cycle", "say cr.optim.lr_scheduler.OneCycleLR"),
        ("distr_categorical", "say cr.distributions.Categorical"),
        ("dataset_subset", "say cr.utils.data.Subset"),
        ("cuda_is_available", "say cr.cuda.is_available"),
        ("with_no_grad", r"say with cr.no_grad\(\):"),
        ("with_detect_anomaly", r"say with cr.detect_anomaly\(\):"),
        ("nn_fractional_max_pool2d", "say cr.nn.FractionalMaxPool2d"),
        ("torch_quint8", "this name of torch for R has no counterpart"),
        ("tesnor", "did you mean 'tensor'"),
        ("fori_loop", "write a for loop, or say cr.scan"),
        ("custom_vjp", "say cr.autograd_function"),
        ("Function", "say cr.autograd.Function"),
        ("Linear", "say cr.nn.Linear"),
        ("GradientTape", r"Tensors with requires_grad=True .* cr.grad\(f\)"),
        ("histogram2d", "say np.histogram2d, which takes Tensors"),
        ("Adam", "say cr.optim.Adam"),
    ],
)
def test_a_name_leads_to_one_of_ours(name: str, mend: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': {mend}"):
        getattr(cr, name)


def test_functions_of_nn_are_in_functional() -> None:
    with pytest.raises(AttributeError, match=r"say cr\.nn\.functional\.softmax"):
        getattr(cr.nn, "soft" + "max")


@pytest.mark.parametrize(
    ("module", "mend"),
    [
        ("chainrule.fx", "cr.graph"),
        ("chainrule.nn.quantized", "without quantized"),
        ("chainrule.utils.tensorboard", "matplotlib"),
    ],
)
def test_the_import_of_a_missing_module_names_the_mend(module: str, mend: str) -> None:
    with pytest.raises(
        ModuleNotFoundError, match=f"^No module named '{module}': .*{mend}"
    ) as found:
        import_module(module)
    assert found.value.name == module


def test_the_import_of_other_modules_raises_the_usual_error() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'chainrule.nn.typo'$"):
        import_module("chainrule.nn.typo")


def test_a_function_that_is_one_of_nn_functional_alone_is_said() -> None:
    with pytest.raises(AttributeError, match=r"cr\.nn\.functional\.batch_norm, with the arguments"):
        cr.batch_norm  # type: ignore[attr-defined]  # noqa: B018


def test_dir_offers_what_is_public_alone() -> None:
    offered = set(dir(cr))
    assert {"Tensor", "grad", "nn", "random", "save", "sin"} <= offered
    assert not {"arguments", "interrupts", "kernels", "operation", "pytree"} & offered
