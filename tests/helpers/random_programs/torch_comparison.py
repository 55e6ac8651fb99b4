"""Comparison of a random program in chainrule and in PyTorch, line by line.

All values, gradients, flags, versions and errors are compared. The comparison stops where PyTorch
is known to differ although chainrule is right.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import chainrule as cr
from helpers.random_programs.run import Run, chainrule_run, flags, runnable, torch_run
from helpers.random_programs.source import reads_and_makes
from helpers.tensors import memory

# --- errors --------------------------------------------------------------------------------------

_CATEGORIES = {
    "its base or another view of its base has been modified": "stale view",
    "a leaf Variable that requires grad": "refused write",
    "a view of a leaf Variable": "refused write",
    "returns multiple views": "refused write",
    "no_grad mode": "refused write",
    "created inside a custom": "refused write",
    "modified by an inplace operation": "saved value changed",
    "Trying to backward through the graph a second time": "freed",
    "not have been used in the graph": "unused",
    "does not require grad": "no grad",
    "doesn't require gradient": "no grad",
    "requires_grad=False": "no grad",
    "only for scalar outputs": "not a scalar",
}


_ALIKE = {"freed", "saved value changed", "stale view"}
"""Errors that may hold at once: either library may report any of them first."""


def category(error: Exception | None) -> str:
    """Return the category of an error by its text in either library, else "other"."""
    if error is None:
        return "none"
    return next((name for text, name in _CATEGORIES.items() if text in str(error)), "other")


# --- comparison -----------------------------------------------------------------------------------

_LARGE = 1e4
_KINKS = ("relu", "abs", "clamp", "maximum", "minimum", "amax", "amin", "where", "with_mask")

_INDEXED = re.compile(r"t\d+\[(\[|lib\.tensor)|\] = |_\(|[-+*]= ")


class Stop(Exception):
    """The reason why the runs can't be compared from here on."""


def compare_libraries(program: Sequence[str]) -> str:
    """Run a program in both libraries and compare everything; return how the comparison ended."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            _Comparison().run(program)
        except Stop as reason:
            return f"stopped: {reason}"
    return "compared to the end"


class _Comparison:
    """Runs of one program in both libraries."""

    def __init__(self) -> None:
        self.ours, self.theirs = chainrule_run(), torch_run()
        self.second_order = False  # then a gradient may be zeros in one and None in the other
        self.versions: dict[str, int] | None = {}  # by how much PyTorch's number is higher
        self.hooked: dict[str, list[Any]] = {}
        self.done: list[str] = []

    def run(self, program: Sequence[str]) -> None:
        try:
            for line in program:
                self._step(line)
            for line in self._closing_lines():
                self._step(line)
            self._compare_all(self._flags)
        except AssertionError as error:
            code = "\n".join(self.done)
            raise AssertionError(f"{error}\n\n--- the program ---\n{code}") from None

    def _step(self, line: str) -> None:
        reads, makes = reads_and_makes(line)
        if not runnable(line, self.ours.names):
            return
        self.done.append(line)
        self.second_order = self.second_order or "create_graph" in line
        if any(kink in line for kink in _KINKS):
            self._check_kinks(reads)
        custom_write = "triple_in_place" in line
        if custom_write:
            self.versions = None  # PyTorch counts it twice: in mark_dirty, too
            if any(self.theirs.tensors[name].grad is not None for name in reads):
                raise Stop("PyTorch drops the .grad of what a custom function writes to")
        self._check_renewed(line, reads)
        if "register_hook" in line or "retain_grad" in line:
            for name in reads:  # PyTorch crashes when a hook is set on a view that is out of date
                _requires_grad(self.theirs.tensors[name])
                self.hooked[name] = self._grad_fns(name)
        before = _State(self.ours.tensors)
        ours, theirs = self.ours.step(line), self.theirs.step(line)
        self._compare_outcome(line, ours, theirs)
        assert cr.is_grad_enabled(), "recording was left off"
        if ours is not None:
            if not custom_write:  # its forward has written before it is refused
                before.compare(self.ours.tensors, "backward" in line or "lib.grad" in line)
            self._recover(line)
        self._check_hooked(line)
        self._check_layout(makes, line)
        self._compare_all(lambda t: _values(t)[:2])
        self._compare_versions()

    def _check_layout(self, makes: tuple[str, ...], line: str) -> None:
        """Stop if only one reshape() copied: memory layouts are private to each library."""
        if "reshape" in line and makes:
            ours, theirs = (_is_view(run.tensors.get(makes[0])) for run in (self.ours, self.theirs))
            if ours != theirs:
                raise Stop("one has copied")

    def _check_renewed(self, line: str, reads: frozenset[str]) -> None:
        """Stop if PyTorch gave a view a new node after an unrecorded write.

        The view's own gradient then comes from later consumers only; in chainrule, from all.
        """
        asks = any(text in line for text in ("register_hook", "retain_grad", "lib.grad"))
        unrecorded = any("no_grad" in done or ".detach()" in done for done in self.done)
        views = [self.theirs.tensors[name] for name in reads if _is_view(self.theirs.tensors[name])]
        if asks and unrecorded and any(view._version > 0 for view in views):
            raise Stop("PyTorch has made a view anew")

    def _check_hooked(self, line: str) -> None:
        """Stop where hooks belong to the old node of a view.

        PyTorch makes a new node even after unrecorded writes, and lets writes through a view bypass
        the old one.
        """
        target = re.match(r"t\d+", line)
        through_view = target is not None and _is_view(self.ours.tensors.get(target[0]))
        for name, (mine, other) in self.hooked.items():
            now = self._grad_fns(name)
            if (now[0] is mine) != (now[1] is other) or (now[0] is not mine and through_view):
                raise Stop("hooks on views that were written to")

    def _grad_fns(self, name: str) -> list[Any]:
        return [_grad_fn(run.tensors.get(name)) for run in (self.ours, self.theirs)]

    def _compare_outcome(self, line: str, ours: Any, theirs: Any) -> None:
        if "lib.grad" in line and "retain_grad" in "".join(self.done):
            raise Stop("PyTorch's grad() adds to the .grad of what retains it")
        if self.second_order and category(ours) != category(theirs):
            raise Stop("the rules save other values")
        if theirs is None and "read-only" in str(ours):
            raise Stop("PyTorch writes to parts of expanded memory")
        if theirs is None and category(ours) == "saved value changed" and "MmB" in str(ours):
            raise Stop("PyTorch's matmul saves a copy of what was expanded")
        if theirs is None:
            assert ours is None, f"only chainrule raises: {ours!r}"
            return
        expected = category(theirs)
        if "single memory location" in str(theirs):
            raise Stop("overlapping memory")
        if ours is None and expected == "stale view" and not _uses(line):
            raise Stop("PyTorch refuses even questions to a view that is out of date")
        if expected == "stale view" and "multiple views" in str(theirs):
            raise Stop("PyTorch lets no part of a split be used whose base was written to")
        if any(text in str(theirs) for text in ("NoneType", "detached in-place", "INTERNAL")):
            raise Stop("PyTorch's own")  # a hook on an unused output gets None; odd detach_()
        if ours is None and "Can't detach views" in str(theirs) and "@" in "".join(self.done):
            raise Stop("PyTorch's matmul gives a view of what it made")
        if ours is None and "no_grad mode" in str(theirs) and "custom Function" in str(theirs):
            raise Stop("PyTorch refuses writes to the alias of what has no grad")
        if self._saved_there_only(str(theirs)):
            raise Stop("PyTorch saves more")
        if ours is None and expected == "refused write":
            target = re.match(r"t\d+", line)
            if "with_mask" in "".join(self.done):
                raise Stop("PyTorch refuses writes to views of what is not differentiable")
            made = target is not None and _grad_fn(self.theirs.tensors[target[0]]) is not None
            if made and "a view of a leaf" not in str(theirs):
                raise Stop("PyTorch takes a view that is out of date for a leaf")
        if ours is None and expected == "freed" and any(map(_INDEXED.search, self.done)):
            raise Stop("PyTorch frees an index, and how a region was written")
        assert ours is not None, f"only PyTorch raises: {theirs!r}"
        if expected != "other":
            got = category(ours)
            fits = got == expected or {got, expected} <= _ALIKE
            fits = fits or "stale view" in (got, expected) or "read-only" in str(ours)
            assert fits, f"{ours!r}\n instead of {theirs!r}"
        if "triple_in_place" in line:
            raise Stop("PyTorch is broken after it refused a custom write")  # it may even crash

    def _saved_there_only(self, text: str) -> bool:
        """Say whether the overwritten value is a result that only PyTorch saves or shares."""
        owner = re.search(r"which is output \d+ of (\D+)\d*, ", text)
        if owner is None:
            return False
        name = owner[1].lower()
        if name == "asstrided":  # a view, after a write to it: Relu, if that was relu_()
            name = "(relu|tanh|sigmoid|exp)"
        written = any(re.search(rf"\.{name}_\(", line) for line in self.done)
        return written or name in ("amax", "amin", "prod", "cumprod", "logsumexp")

    def _recover(self, line: str) -> None:
        """Continue after an error: clear .grad, since a failed pass may have set any of them."""
        if "backward" not in line and "lib.grad" not in line:
            return
        for run in (self.ours, self.theirs):
            run.seen.clear()
            for tensor in run.tensors.values():
                tensor.grad = None
        x = cr.tensor(3.0, requires_grad=True)
        (x * x).backward()
        assert x.grad.item() == 6, "a pass after the failed one is wrong"
        if "=True" not in line:
            raise Stop("a pass failed after freeing part of the graph")

    # --- comparing ---

    def _compare_all(self, show: Callable[[Any], Any]) -> None:
        ours, theirs = self.ours.tensors, self.theirs.tensors
        assert list(ours) == list(theirs)
        for name in ours:
            self._compare(name, show(ours[name]), show(theirs[name]))
        for key, values in self.theirs.seen.items():
            self._compare(f"seen {key}", self.ours.seen.get(key), values)

    def _compare_versions(self) -> None:
        if self.versions is not None:
            ours, theirs = self.ours.tensors, self.theirs.tensors
            for name in ours:
                ahead = theirs[name]._version - ours[name]._version
                expected = self.versions.setdefault(name, ahead)
                assert ahead == expected, f"{name} is at version {ours[name]._version}"

    def _compare(self, what: str, ours: Any, theirs: Any) -> None:
        if isinstance(theirs, str) and theirs == "stale view":
            return  # PyTorch lets no part of a split be used whose base was written to
        if self.second_order and (ours is None) != (theirs is None):
            given = theirs if ours is None else ours
            assert not given.any(), f"{what}: {ours} instead of {theirs}"
        elif (ours is None) != (theirs is None):
            raise AssertionError(f"{what}: {ours} instead of {theirs}")
        elif isinstance(theirs, np.ndarray):
            assert ours.shape == theirs.shape, f"{what}: {ours.shape} instead of {theirs.shape}"
            if not np.isfinite(theirs).all() or (abs(theirs) > _LARGE).any():
                raise Stop("large numbers")
            close = np.allclose(ours, theirs, rtol=1e-9, atol=1e-9)
            assert close, f"{what}: {ours} instead of {theirs}"
        elif isinstance(theirs, list | tuple):
            assert len(ours or ()) == len(theirs), f"{what}: {ours} instead of {theirs}"
            for mine, other in zip(ours, theirs, strict=True):
                self._compare(what, mine, other)
        else:
            assert ours == theirs, f"{what}: {ours} instead of {theirs}"

    def _check_kinks(self, reads: frozenset[str]) -> None:
        """Stop where rounding decides on which side of a kink a number is."""
        numbers = [_flat(run, reads) for run in (self.ours, self.theirs)]
        a, b = (np.sign(np.subtract.outer(flat, flat)) for flat in numbers)
        if not np.array_equal(a, b):
            raise Stop("rounding at a kink")

    def _flags(self, tensor: Any) -> Any:
        try:
            return None if self.second_order else flags(tensor)
        except RuntimeError as error:
            return category(error)

    def _closing_lines(self) -> list[str]:
        names = [name for name, t in self.theirs.tensors.items() if _requires_grad(t)]
        if not names:
            return []
        terms = [f"{number % 3 + 1} * weigh({name})" for number, name in enumerate(names)]
        return [f"({' + '.join(terms)}).backward()"]


def _requires_grad(tensor: Any) -> bool:
    try:
        return flags(tensor)[0]
    except RuntimeError:  # a view that PyTorch refuses to use
        return False


def _uses(line: str) -> bool:
    """Say whether a line computes, rather than only queries or registers hooks."""
    return re.search(r"look\(|register_hook|retain_grad|detach_|\.grad =", line) is None


def _is_view(tensor: Any) -> bool:
    return tensor is not None and tensor._base is not None


def _grad_fn(tensor: Any) -> Any:
    """Return the grad_fn of a view, which may be renewed by the query."""
    try:
        return tensor.grad_fn if _is_view(tensor) else None
    except RuntimeError:
        return None


def _values(tensor: Any) -> Any:
    """Return the data that can be read without a query of grad_fn, which would renew a view."""
    if isinstance(tensor, cr.Tensor):
        grad = tensor._grad
        return memory(tensor), None if grad is None else memory(grad), tensor._version
    grad = tensor.grad
    return tensor.data.numpy(), None if grad is None else grad.data.numpy(), tensor._version


def _flat(run: Run, reads: frozenset[str]) -> np.ndarray:
    parts = [_values(run.names[name])[0].ravel() for name in sorted(reads)]
    return np.concatenate([*parts, [-1, 0, 0.5, 1]])


class _State:
    """The values that an error must not change."""

    def __init__(self, tensors: dict[str, cr.Tensor]) -> None:
        self.before = {name: _copied(t) for name, t in tensors.items()}

    def compare(self, tensors: dict[str, cr.Tensor], passed: bool) -> None:
        """Compare the variables with the saved values, but for .grad after a failed pass."""
        for name, (value, grad, version) in self.before.items():
            now_value, now_grad, now_version = _values(tensors[name])
            assert version == now_version, f"the error left {name} at another version"
            assert np.array_equal(value, now_value), f"the error left {name} changed"
            assert passed or (grad is None) == (now_grad is None), f"the error touched {name}.grad"


def _copied(tensor: cr.Tensor) -> Any:
    value, grad, version = _values(tensor)
    return value.copy(), grad, version
