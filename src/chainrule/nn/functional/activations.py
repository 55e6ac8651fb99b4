"""Activations: what a network puts between its layers."""

from __future__ import annotations

from chainrule.ops import log_softmax, relu, sigmoid, softmax

__all__ = ["relu", "sigmoid", "softmax", "log_softmax"]
