"""Missing names of PyTorch raise errors that say what to write instead."""

from __future__ import annotations

from importlib import import_module

import pytest

from chainrule.missing_names import _MENDS


@pytest.mark.parametrize(("module", "name"), _MENDS)
def test_a_listed_name_is_missing_and_its_error_names_a_mend(module: str, name: str) -> None:
    with pytest.raises(AttributeError, match=f"^module '{module}' has no attribute '{name}': "):
        getattr(import_module(module), name)


def test_other_names_raise_the_usual_error() -> None:
    for module in ("chainrule", "chainrule.nn", "chainrule.optim", "chainrule.cuda"):
        with pytest.raises(AttributeError, match=f"^module '{module}' has no attribute 'typo'$"):
            getattr(import_module(module), "typ" + "o")
