"""Fixtures for the numbered behaviours."""

from __future__ import annotations

import pytest

import chainrule as cr
from helpers.torch_comparison import Library


@pytest.fixture(params=["chainrule", "torch"])
def lib(request: pytest.FixtureRequest) -> Library:
    """Each library in turn: a test that takes `lib` expects the same of chainrule and PyTorch."""
    if request.param == "chainrule":
        return Library(cr, cr.autograd_backward, cr.autograd_grad)
    torch = pytest.importorskip("torch")
    return Library(torch, torch.autograd.backward, torch.autograd.grad)
