"""`why`: one paragraph about the state of a tensor or a function, with the line and the mend."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from chainrule.autograd.conversions import is_differentiated
from chainrule.autograd.function import AutogradFunction
from chainrule.autograd.function_node import FunctionNode
from chainrule.autograd.node import AccumulateGrad, Node, endpoint, made_at, reachable
from chainrule.autograd.reachability import leading
from chainrule.autograd.tensor import Tensor
from chainrule.backend import whole
from chainrule.compiler.api import Compiled
from chainrule.compiler.expansion import expanded
from chainrule.diagnostics import compiled_functions
from chainrule.diagnostics.failing_passes import problem_of, several, variable_of
from chainrule.diagnostics.missing_history import called, upper, without_history
from chainrule.diagnostics.program_text import (
    MENDS,
    Cut,
    argument,
    cut_of,
    cut_with,
    name_of,
    variables,
)
from chainrule.diagnostics.zero_gradients import candidates, is_step, reason_of, trace
from chainrule.errors import ArgumentTypeError, AutogradError, FreedGraphError
from chainrule.transforms.vmap.batched_array import BatchedArray

__all__ = ["Explanation", "why"]


class Explanation(str):
    """A paragraph of plain English; `print` it, or look at it in a console."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def why(subject: Any, root: Tensor | None = None) -> Explanation:
    """Explain the state of a tensor, a module or a function in one paragraph.

    For a tensor: why its ``.grad`` is None or zero, why it does not require grad, why a backward
    pass from it would fail. For a compiled function: why it was traced again, and why NumPy runs it
    and not machine code. For a module: which parameters have no gradient. Each answer names the
    line, and what to write instead. If all is well, it says so.

    Parameters
    ----------
    subject : Tensor, compiled function, custom function or module
        The object in question.
    root : Tensor, optional
        The tensor whose gradient is meant, such as the loss. By default it is looked for among the
        variables of the functions that are running. The backward functions between it and `subject`
        run once more, if they have to tell why a gradient is zero; no ``.grad`` changes.

    Returns
    -------
    Explanation
        A string of a few sentences.

    Raises
    ------
    TypeError
        If there is nothing to say about `subject`.

    See Also
    --------
    explain : Remembers the exact line at which a history ended.
    detect_anomaly : Finds the origin of a nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([1.0, 2.0], requires_grad=True)
    >>> print(cr.why(w))
    The .grad of `w` is None since no backward pass has come to it, and nothing that you hold here \
was computed from it. Compute a loss with it, and call loss.backward(); zero_grad() sets .grad to \
None again.
    """
    if isinstance(subject, Compiled) or isinstance(getattr(subject, "__func__", None), Compiled):
        return Explanation(compiled_functions.explained(getattr(subject, "__func__", subject)))
    spec = getattr(subject, "__dict__", {}).get("spec")
    if isinstance(spec, AutogradFunction):
        return Explanation(_of_custom_function(spec))
    if hasattr(subject, "named_parameters"):
        return Explanation(_of_module(subject, root))
    if isinstance(subject, Tensor):
        return Explanation(_of_tensor(subject, root, argument()))
    if callable(subject):
        return Explanation(
            f"The function {getattr(subject, '__name__', subject)} is plain Python: each call runs "
            "its operations one by one, as NumPy calls. cr.compile makes one program of it."
        )
    given = argument()
    mend = "the Tensor itself, not its array or number"
    if subject is None and given.endswith(".grad"):
        mend = f"the Tensor whose .grad it is, cr.why({given.removesuffix('.grad')})"
    elif hasattr(subject, "param_groups"):
        mend = "the module, or a parameter"
    raise ArgumentTypeError(
        f"why() explains tensors, modules and functions, got {type(subject).__name__}: hand it "
        f"{mend}"
    )


# --- tensors --------------------------------------------------------------------------------------


def _of_tensor(tensor: Tensor, root: Tensor | None, name: str = "") -> str:
    name = called(tensor) if name == "" or name_of(tensor) is not None else f"`{name}`"
    try:
        required = tensor.requires_grad
    except AutogradError as error:
        return str(error)
    if not required:
        return without_history(tensor, name)
    if is_differentiated(tensor):
        return (
            f"{upper(name)} belongs to a running transform, such as grad() or jacobian(), and all "
            "is well: its derivative is what the transform returns. Its .grad stays None."
        )
    if isinstance(tensor._array, BatchedArray):
        return _of_example(tensor._array, name)
    grad = tensor._grad
    if grad is not None:
        return _of_gradient(tensor, name, grad, root)
    if not tensor.is_leaf:
        return _of_result(tensor, name, root)
    return _of_leaf(tensor, name, root)


def _of_example(array: BatchedArray, name: str) -> str:
    return (
        f"{upper(name)} stands for each of the {array.level.count} examples of a running vmap, "
        "and its history is recorded. Gradients come when vmap has returned: call backward() on "
        "what it returns, or take grad() inside of it."
    )


# --- leaves and results without a gradient --------------------------------------------------------


def _of_leaf(tensor: Tensor, name: str, root: Tensor | None) -> str:
    begin = f"The .grad of {name} is None"
    node = endpoint(tensor._edge)[0]
    roots = [root] if root is not None else _dependents(tensor, node)
    if root is not None and not root.requires_grad:
        return f"{begin} and stays None: {without_history(root, called(root))}"
    if not roots:
        alias = _cut_with(variable_of(name)) or cut_with(variable_of(name).partition(".")[0])
        more = "" if alias is None else f" A history ends at {_place_of(alias)}"
        return (
            f"{begin} since no backward pass has come to it, and nothing that you hold here was "
            f"computed from it.{more or _ASK_FOR_A_PASS}"
        )
    last = roots[-1]
    if node not in reachable([endpoint(last._edge)[0]], node.seq):
        return f"{begin}: {called(last)} was not computed from it, {_loss_of_history(name, last)}"
    return f"{begin}{_missing_pass(node, last, root is not None)}"


def _loss_of_history(name: str, root: Tensor) -> str:
    """Return why a tensor that was computed of a leaf may not know of it."""
    cut = cut_with(variable_of(name).partition(".")[0]) or cut_of(root, inside=True)
    if cut is not None:
        return f"or lost its history on the way. One ends at {_place_of(cut)}"
    return (
        "so no gradient can come. Use it in the computation, without detach() or conversions; a "
        "parameter that was replaced, as by w = w - lr * w.grad, is another tensor than the one in "
        "the loss."
    )


def _missing_pass(node: Node, last: Tensor, given: bool) -> str:
    """Return why no gradient has come from a tensor that depends on a leaf."""
    shown, start = called(last), endpoint(last._edge)[0]
    problem = problem_of(last, shown)
    if problem is not None and "has been walked" in problem:
        return (
            f": {shown} depends on it and its graph has been walked, so the gradient was "
            "removed or went elsewhere. zero_grad() sets .grad to None, autograd_grad returns "
            "gradients and leaves .grad alone, and backward(inputs=...) fills the given ones only."
            f"{_functions_before(start, node)}"
        )
    if problem is not None:
        return f" since no backward pass has come to it. {problem}"
    traced = trace(last, node) if given else None
    if traced is not None and traced.cotangent is None and traced.stops:
        return (
            f": no gradient arrives, since {made_at(traced.stops[0])}, returned None for "
            "its input. Return a gradient for each argument that needs one, under its name."
        )
    return (
        f" since no backward pass has run, or zero_grad() came after it. {upper(shown)} "
        f"depends on it: call {variable_of(shown)}.backward(){_seed(last)}."
        f"{_functions_before(start, node)}"
    )


def _functions_before(start: Node, node: Node) -> str:
    """Return what to look at if a backward of the user's own is on the way."""
    path = leading(reachable([start], node.seq), {node})
    own = [each for each in path if isinstance(each, FunctionNode)]
    if not own:
        return ""
    last = max(own, key=lambda each: each.seq)
    return f" If a pass has run, see that the backward of {made_at(last)}, doesn't return None."


_ASK_FOR_A_PASS = (
    " Compute a loss with it, and call loss.backward(); zero_grad() sets .grad to None again."
)


def _place_of(cut: Cut) -> str:
    return f"`{cut.text}` ({cut.location}). {MENDS[cut.kind]}."


def _seed(tensor: Tensor) -> str:
    return "" if tensor._array.size == 1 else " on a sum or mean of it, since it has more elements"


def _cut_with(own: str) -> Cut | None:
    """Return where the history of something that may come from the variable `own` ends."""
    found = [(n, t) for n, t in variables() if isinstance(t, Tensor) and n not in (own, "_")]
    for _, value in found:
        cut = None if value.requires_grad else cut_of(value)
        if cut is not None and own in cut.names:
            return cut
    own_module = own.partition(".")[0]
    for _, value in found:
        cut = cut_of(value, inside=True) if own_module != own and value.requires_grad else None
        if cut is not None:
            return cut
    return None


def _dependents(tensor: Tensor, node: Node) -> list[Tensor]:
    """Return the variables that were computed from a tensor, the last recorded one last."""
    found: dict[int, Tensor] = {}
    for _, value in variables():
        if isinstance(value, Tensor) and value is not tensor and value._edge is not None:
            start = endpoint(value._edge)[0]
            if start.seq > node.seq and node in reachable([start], node.seq):
                found[id(value)] = value
    return sorted(found.values(), key=lambda t: endpoint(t._edge)[0].seq)


def _of_result(tensor: Tensor, name: str, root: Tensor | None) -> str:
    node = tensor.grad_fn
    assert node is not None
    begin = f"{upper(name)} is the result of {made_at(node)}"
    problem = problem_of(tensor, name)
    if root is not None and root is not tensor:
        target = endpoint(tensor._edge)[0]
        if root._edge is None or target not in reachable([endpoint(root._edge)[0]], target.seq):
            return f"{begin}. {upper(called(root))} was not computed from it: it has no gradient."
    if tensor.retains_grad:
        return (
            f"{begin}, and its .grad is kept (retain_grad), but no backward pass has come through "
            f"it yet. {problem or f'Call backward() on what is computed from {name}.'}"
        )
    own = (
        f"Its own .grad stays None, since only leaves keep theirs: call "
        f"{_own(name)}.retain_grad() before the pass if you want to see it."
    )
    if problem is not None and problem != several(tensor, name):
        return f"{begin}. {own}{_rebound(name, tensor)} {problem}"
    well = f", {_leaves_of(tensor)}" if problem is None else ""
    more = _rebound(name, tensor) or (f" {problem}" if problem else "")
    return f"{begin}{well}. {own}{more}"


def _own(name: str) -> str:
    """Return the name of the variable that was asked about; x if it has none."""
    return variable_of(name) if name.startswith("`") else "x"


def _leaves_of(tensor: Tensor) -> str:
    """Return where a backward pass from a tensor would go."""
    leaves = [n for n in reachable([endpoint(tensor._edge)[0]], 0) if type(n) is AccumulateGrad]
    kept = [leaf for n in leaves if (leaf := n.variable) is not None]
    if not kept:
        return (
            "but the leaves that it was computed from no longer exist, and a gradient would have "
            "nowhere to go: keep them in variables"
        )
    names = sorted({name for leaf in kept[:4] if (name := called(leaf))[0] == "`"})
    reached = ", ".join(names) or ("1 leaf" if len(kept) == 1 else f"{len(kept)} leaves")
    return f"and all is well: backward() would go to {reached}"


def _rebound(name: str, tensor: Tensor) -> str:
    node = tensor.grad_fn
    assert node is not None
    location = node.location
    if location is None:
        return ""
    line = str(location).partition(": ")[2]
    own = variable_of(name)
    if re.match(
        rf"{re.escape(own)} = {re.escape(own)}\.(to|double|float|half|cuda|cpu|clone)\(", line
    ):
        return (
            f" The line makes a new tensor of {own}: convert it before requires_grad_(), or make "
            f"the result a leaf, {own} = {line.partition(' = ')[2]}.detach().requires_grad_()."
        )
    if line.startswith(f"{own} = ") and own in line.partition("=")[2].split(" requires_grad")[0]:
        return (
            f" The line rebinds {own}: if it was a parameter, update it in place under no_grad(), "
            "as an optimiser does."
        )
    if line.startswith(f"{own} = ") and "requires_grad=True" in line:
        return " To make a leaf of it, set requires_grad_() after the last operation on the line."
    return ""


# --- gradients ------------------------------------------------------------------------------------


def _of_gradient(tensor: Tensor, name: str, grad: Tensor, root: Tensor | None) -> str:
    values = np.asarray(whole(grad._array))
    if np.isnan(values).any():
        return (
            f"The .grad of {name} has {int(np.isnan(values).sum())} nan of {values.size} elements. "
            "Run forward and backward in `with cr.detect_anomaly():`, which names the operation "
            "and the element that made the first one."
        )
    if np.isinf(values).any():
        return (
            f"The .grad of {name} has {int(np.isinf(values).sum())} infinities in {values.size} "
            "elements. Run forward and backward in `with cr.detect_anomaly(infinity=True):`, which "
            "names the operation and the element that made the first one."
        )
    zero = int((values == 0).sum())
    if zero < values.size or not values.size:
        some = f" {zero} of its {values.size} elements are 0." if zero else ""
        size = ""
        if values.dtype.kind == "f" and values.size == 1:
            size = f", {values.item():.4g}"
        elif values.dtype.kind == "f":
            size = f", from {values.min():.4g} to {values.max():.4g}"
        return (
            f"All is well: {name} has a gradient{size}.{some} Passes add up in it until it is set "
            "to None, as by zero_grad()."
        )
    return _of_zeros(tensor, name, root)


def _of_zeros(tensor: Tensor, name: str, root: Tensor | None) -> str:
    begin = f"The .grad of {name} is 0 in every element."
    node = endpoint(tensor._edge)[0]
    roots = [root] if root is not None else _dependents(tensor, node)
    if not roots:
        return (
            f"{begin} Nothing that you hold here was computed from it, so the reason is not known: "
            f"ask cr.why({_own(name)}, loss) while you hold the loss."
        )
    last = roots[-1]
    assert last is not None
    if last._edge is None:
        return f"{begin} {without_history(last, called(last))}"
    start = endpoint(last._edge)[0]
    if node not in reachable([start], node.seq):
        return f"{begin} {upper(called(last))} was not computed from it."
    try:
        traced = trace(expanded([last])[0][0], node)
    except FreedGraphError:
        found = candidates(start, node)
        certain = [each for each in found if is_step(each)]
        if certain:
            return f"{begin} {reason_of(certain[0])}"
        shown = "; ".join(made_at(each) for each in found[:3])
        guess = f" Operations on the way that can do it: {shown}." if found else ""
        return (
            f"{begin} The graph has been released, so the values are not known.{guess} Call "
            f"backward(retain_graph=True), or ask cr.why({_own(name)}, "
            f"{variable_of(called(last))}) before the pass."
        )
    except AutogradError as error:
        return f"{begin} Going through the graph again failed: {error}"
    return _of_traced(begin, name, traced, last)


def _of_traced(begin: str, name: str, traced: Any, root: Tensor) -> str:
    if traced.sums:
        return f"{begin} Several gradients arrive, and their sum is 0: they cancel."
    if traced.zeros:
        return f"{begin} {reason_of(traced.zeros[-1])}"
    if traced.stops:
        return f"{begin} {upper(made_at(traced.stops[-1]))}, returned None for its input."
    if traced.cotangent is not None and np.any(np.asarray(whole(traced.cotangent)) != 0):
        return (
            f"{begin} A pass from {called(root)} with ones brings a gradient that is not 0: "
            "either the pass that ran began at another tensor or with another gradient, or a hook "
            "or zero_grad(set_to_none=False) has set it to 0."
        )
    return f"{begin} It gets smaller at each operation on the way, until it is rounded to 0."


# --- modules and custom functions -----------------------------------------------------------------


def _of_module(module: Any, root: Tensor | None) -> str:
    parameters, hidden = dict(module.named_parameters()), _hidden(module)
    if not parameters:
        nothing = f"{type(module).__name__} has no parameters, so there is nothing to train."
        return f"{nothing} {hidden}".rstrip()
    frozen = [name for name, p in parameters.items() if not p.requires_grad]
    missing = [name for name, p in parameters.items() if p.requires_grad and p._grad is None]
    zero = [n for n, p in parameters.items() if p._grad is not None and not p._grad._array.any()]
    title = f"{type(module).__name__}, with {len(parameters)} parameters"
    if not (frozen or missing or zero):
        well = f"ach parameter of {title}, has a gradient that is not 0."
        return (
            f"E{well} But {hidden[:1].lower()}{hidden[1:]}" if hidden else f"All is well: e{well}"
        )
    parts = []
    if frozen:
        parts.append(f"frozen, by requires_grad_(False): {_listed(frozen)}")
    if missing:
        parts.append(f"without a gradient: {_listed(missing)}")
    if zero:
        parts.append(f"with a gradient of 0: {_listed(zero)}")
    text = f"{title}: {'; '.join(parts)}."
    first = (missing or zero or frozen)[0]
    return f"{text} {_of_tensor(parameters[first], root, first)} {hidden}".rstrip()


def _hidden(module: Any) -> str:
    """Tell of modules and parameters in plain containers, which no optimiser is given."""
    modules = dict(module.named_modules())
    known = {id(each) for each in (*modules.values(), *module.parameters())}
    for path, owner in modules.items():
        for name, value in vars(owner).items():
            listed = list(value.values()) if isinstance(value, dict) else value
            if name[:1] == "_" or not isinstance(listed, list | tuple):
                continue
            lost = [each for each in listed if _trains(each) and id(each) not in known]
            if lost:
                kind = "Parameter" if isinstance(lost[0], Tensor) else "Module"
                container = "Dict" if isinstance(value, dict) else "List"
                return (
                    f"`{f'{path}.' if path else ''}{name}` is a plain {type(value).__name__}, "
                    f"whose parameters no optimiser gets: put it into nn.{kind}{container}."
                )
    return ""


def _trains(value: Any) -> bool:
    """Tell whether something in a container is a parameter, or has some."""
    if isinstance(value, Tensor):
        return value.is_leaf and value.requires_grad
    return hasattr(value, "named_parameters") and any(True for _ in value.parameters())


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(names[:4]) + more


def _of_custom_function(function: Any) -> str:
    if function.backward_rule is None:
        return (
            f"{function.name} has no backward: results require grad, and a backward pass that "
            f"comes to them fails. Give it one with @{function.name}.backward."
        )
    jvp = (
        ""
        if function.jvp_rule is not None
        else (f" Forward mode (jvp) needs a rule of its own, @{function.name}.jvp.")
    )
    return (
        f"All is well: {function.name} has a backward. {function.name}.check(...) compares it with "
        f"finite differences.{jvp}"
    )
