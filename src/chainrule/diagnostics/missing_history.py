"""Tensors without a history: what ended it, by what `explain` has remembered or by the source."""

from __future__ import annotations

from typing import Any

from chainrule.autograd.location import assigned_at
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.tensor import Tensor
from chainrule.diagnostics.explain import cause_of
from chainrule.diagnostics.program_text import (
    MENDS,
    Cut,
    cut_of,
    is_recorded_gradient,
    name_of,
    sources_of,
    variables,
)


def called(tensor: Tensor) -> str:
    name = name_of(tensor)
    return "this tensor" if name is None else f"`{name}`"


def upper(name: str) -> str:
    return name[:1].upper() + name[1:]


def without_history(tensor: Tensor, name: str) -> str:
    begin = f"{upper(name)} does not require grad"
    if tensor.dtype.kind not in "fc":
        cut, line = cut_of(tensor), assigned_at(tensor)
        made = "" if line is None else f" It was made at {line}."
        made = made if cut is None else f" It was made by `{cut.text}` ({cut.location})."
        return (
            f"{begin}: its dtype is {tensor.dtype}, and only floating-point and complex numbers "
            f"have derivatives.{made} Convert it with .float() before you call requires_grad_(), "
            "or compute without integers on the way from the parameters."
        )
    if hasattr(tensor, "_frozen"):
        return (
            f"{begin} since requires_grad_(False) was called on it: it is a frozen leaf. Call "
            "requires_grad_() to train it again."
        )
    owner = next((n for n, t in variables() if isinstance(t, Tensor) and t._grad is tensor), None)
    if owner is not None:
        return f"{begin}: it is the .grad of `{owner}`. {MENDS['gradient']}."
    cause = cause_of(tensor)
    if cause is not None:
        return f"{begin}: {_of_cause(cause)}"
    cut = cut_of(tensor)
    if cut is not None:
        return f"{begin}: {_of_cut(cut)}"
    if not is_grad_enabled():
        return (
            f"{begin}, and recording is switched off right here, by no_grad() or set_grad_enabled("
            "False). Compute it where recording is on."
        )
    return f"{begin}: {_of_sources(tensor)}"


def end_of_history(tensor: Tensor) -> str:
    """Return where the history of a tensor that has none ended, "" if the source doesn't tell."""
    cause = cause_of(tensor)
    if cause is not None:
        return upper(_of_cause(cause))
    cut = cut_of(tensor)
    return "" if cut is None else upper(_of_cut(cut).removesuffix(_EXACT))


def _of_sources(tensor: Tensor) -> str:
    """Tell why a tensor has no history by what it was computed of, if the source tells."""
    if is_recorded_gradient(tensor):
        return (
            "it is a gradient, recorded with create_graph=True, that doesn't depend on what "
            "requires grad, such as that of a linear function. A second derivative is 0: "
            "autograd_grad(..., materialize_grads=True) returns zeros."
        )
    for name, value in sources_of(tensor).items():
        parameters = list(value.parameters()) if hasattr(value, "named_parameters") else [value]
        found = [each for each in parameters if isinstance(each, Tensor)]
        if any(each.requires_grad for each in found):
            return (
                f"`{name}`, of which it was computed, requires grad now. If it didn't then, call "
                "requires_grad_() before the computation, else `with cr.explain():` around it "
                "gives the exact line."
            )
        if any(hasattr(each, "_frozen") for each in found):
            return (
                f"`{name}`, of which it was computed, is frozen, by requires_grad_(False). Call "
                f"{name}.requires_grad_() to train it."
            )
    return (
        "it was created without requires_grad=True, or computed from such tensors alone, under "
        "no_grad(), or after a detach(). If it is a parameter, call requires_grad_() on it before "
        "the computation. To have the exact line, run the computation in `with cr.explain():` and "
        "ask again."
    )


def _of_cause(cause: Any) -> str:
    line = f" ({cause.location})" if cause.location else ""
    if cause.kind == "no_grad":
        text = f"its history ended at {cause.operation}, which ran under no_grad(){line}."
    elif cause.kind == "constant":
        text = f"its history ended at {cause.operation}, whose result has no derivative{line}."
    else:
        text = f"its history ended before {cause.operation}, which got a detached tensor{line}."
    return f"{text} {MENDS[cause.kind]}."


def _of_cut(cut: Cut) -> str:
    in_block = cut.kind in ("no_grad", "update")
    what = "it was computed inside" if in_block else "its history ends at"
    text = f"{what} `{cut.text}` ({cut.location}), as far as the source tells."
    exact = "" if in_block else _EXACT
    return f"{text} {MENDS[cut.kind]}.{exact}"


_EXACT = " `with cr.explain():` around it gives the exact line."
