"""Answers to questions about tensors and functions: `why`, and the mode `explain`."""

from chainrule.diagnostics.explain import explain
from chainrule.diagnostics.why import Explanation, why

__all__ = ["Explanation", "explain", "why"]
