"""Missing names of PyTorch raise errors that say what to write instead."""

from __future__ import annotations

from importlib import import_module

import pytest

from chainrule.missing_names import _MENDS


@pytest.mark.parametrize(("module", "name"), _MENDS)
def test_a_listed_name_is_missing_and_its_error_names_a_mend(module: str, name: str) -> None:
    with pytest.raises(AttributeError, match=f"^module '{module}' has no attribute '{name}': "):
        getattr(import_module(module), name)


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        ("Conv2d", "call nn.functional.conv2d, on weights that you keep$"),
        ("ConvTranspose1d", "call nn.functional.conv_transpose1d, on weights"),
        ("BatchNorm3d", "call nn.functional.batch_norm, on weights"),
        ("Dropout", "call nn.functional.dropout$"),
        ("Dropout2d", "call nn.functional.dropout2d$"),
        ("ReLU", "call nn.functional.relu$"),
        ("MSELoss", "call nn.functional.mse_loss$"),
        ("CrossEntropyLoss", "call nn.functional.cross_entropy$"),
        ("KLDivLoss", "call nn.functional.kl_div$"),
        ("Nonsense", "has no attribute 'Nonsense'$"),
        ("conv2d", "has no attribute 'conv2d'$"),
    ],
)
def test_a_layer_says_which_function_it_is(layer: str, text: str) -> None:
    with pytest.raises(AttributeError, match=text):
        getattr(import_module("chainrule.nn"), layer)


def test_other_names_raise_the_usual_error() -> None:
    for module in ("chainrule", "chainrule.nn", "chainrule.optim", "chainrule.cuda"):
        with pytest.raises(AttributeError, match=f"^module '{module}' has no attribute 'typo'$"):
            getattr(import_module(module), "typ" + "o")
