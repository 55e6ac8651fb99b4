"""State dicts of modules: saving, and loading with one report of everything that doesn't fit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from chainrule.arguments import tensor_of
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor, is_parameter, make
from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.nn.modules.members import BUFFER, MODULE, PARAMETER
from chainrule.nn.parameter import Parameter, is_uninitialized

if TYPE_CHECKING:
    from chainrule.nn.modules.module import Module

_EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """Names that a state dict lacked, or had on top."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


def save_state(
    module: Module, found: dict[str, Any], prefix: str, keep_vars: bool
) -> dict[str, Any]:
    """Add the state of a module and those below it to a dict; return what hooks make of it."""
    hooks, metadata = module._hooks, {"version": module._version}
    if hasattr(found, "_metadata"):
        found._metadata[prefix[:-1]] = metadata
    for hook in () if hooks is None else hooks.of("state_pre"):
        hook(module, prefix, keep_vars)
    module._save_to_state_dict(found, prefix, keep_vars)
    for name, child in module._of(MODULE):
        child.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for changes, hook in () if hooks is None else hooks.of("state"):
        changed = hook(module, found, prefix, metadata)
        if changes and changed is not None:
            found = changed
    return found


def save_members(self: Module, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Add the state of a module, without those below it, to a dict."""
    for name, value in [*self._of(PARAMETER), *self._of(BUFFER)]:
        destination[prefix + name] = value if keep_vars else value.detach()
    if hasattr(self, "get_extra_state"):
        destination[prefix + _EXTRA] = self.get_extra_state()


class _Loading:
    """What is wrong with a state dict, and what is to be done once all of it fits."""

    def __init__(self, assign: bool, versions: Any = None) -> None:
        self.assign = assign
        self.versions = versions if isinstance(versions, Mapping) else {}
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []
        self.steps: list[tuple[Any, ...]] = []  # function and arguments

    def visit(self, module: Module, state: dict[str, Any], prefix: str) -> None:
        """Compare a state with a module and those below it."""
        report = self.missing, self.unexpected, self.errors
        version = self.versions.get(prefix[:-1], {})
        metadata = {**version, "assign_to_params_buffers": self.assign}
        hooks = module._hooks
        for with_module, hook in () if hooks is None else hooks.of("load_pre"):
            of = (module,) if with_module else ()
            hook(*of, state, prefix, metadata, True, *report)
        method = module._load_from_state_dict
        if getattr(method, "__func__", None) is load_members:
            self.compare(module, state, prefix)
        else:  # of the user, who may change what the method of `Module` has loaded
            method(state, prefix, metadata, True, *report)
        for name, child in module._of(MODULE):
            dot = f"{prefix}{name}."
            self.visit(child, {k: v for k, v in state.items() if k.startswith(dot)}, dot)
        for hook in () if hooks is None else hooks.of("load"):
            self.run()
            hook(module, IncompatibleKeys(self.missing, self.unexpected))

    def run(self) -> None:
        """Load what is known to fit."""
        steps, self.steps = self.steps, []
        for function, *args in steps:
            function(*args)

    def compare(self, module: Module, state: Mapping[str, Any], prefix: str) -> None:
        """Compare a state with the parameters and buffers of a module, and with its names."""
        known = {_EXTRA} if hasattr(module, "set_extra_state") else set()
        version = self.versions.get(prefix[:-1], {}).get("version") or 0
        for name, value in [*module._of(PARAMETER), *module._of(BUFFER)]:
            known.add(name)
            if prefix + name in state:
                self._match(module, name, value, prefix + name, state[prefix + name])
            elif version >= module._members_since.get(name, 0):
                self.missing.append(prefix + name)
        self._extra(module, state, prefix + _EXTRA)
        children = {name for name, _ in module._of(MODULE)}
        for key in state:
            first, dot, _ = key[len(prefix) :].partition(".")
            if key.startswith(prefix) and first not in (children if dot else known):
                self.unexpected.append(key)

    def _match(self, module: Module, name: str, value: Tensor, key: str, given: Any) -> None:
        if is_uninitialized(given) and is_uninitialized(value):
            return
        if not isinstance(given, Tensor):
            if not hasattr(given, "__array__"):
                self.errors.append(
                    f"While copying the parameter named {key!r}, expected a Tensor or an array "
                    f"from checkpoint but received {type(given).__name__}."
                )
                return
            given = tensor_of(np.asarray(given.detach() if hasattr(given, "detach") else given))
        if given.shape != value.shape:
            self.errors.append(
                f"size mismatch for {key}: copying a param with shape {list(given.shape)} from "
                f"checkpoint, the shape in current model is {list(value.shape)}."
            )
        elif self.assign:
            self.steps.append((_assign, module, name, given))
        else:
            self.steps.append((_copy, value, given))

    def _extra(self, module: Module, state: Mapping[str, Any], key: str) -> None:
        has_extra = hasattr(module, "set_extra_state")
        if has_extra and key in state:
            load: Any = module.set_extra_state  # type: ignore[attr-defined]  # of a subclass
            self.steps.append((load, state[key]))
        elif has_extra:
            self.missing.append(key)


def load_state(
    module: Module, state_dict: Mapping[str, Any], strict: bool, assign: bool
) -> IncompatibleKeys:
    """Load a state dict, or raise with everything that doesn't fit and change nothing."""
    if not isinstance(state_dict, Mapping):
        mend = ""
        if isinstance(state_dict, str | os.PathLike):
            mend = ": read the file first, load_state_dict(cr.load(path))"
        elif hasattr(state_dict, "state_dict"):
            mend = ": write load_state_dict(other.state_dict())"
        raise ArgumentTypeError(
            f"Expected state_dict to be dict-like, got {type(state_dict)}{mend}."
        )
    loading = _Loading(assign, getattr(state_dict, "_metadata", None))
    loading.visit(module, dict(state_dict), "")
    errors = loading.errors
    if strict:
        names = {"Missing": loading.missing, "Unexpected": loading.unexpected}
        report = [
            f"{title} key(s) in state_dict: {', '.join(map(_quoted, keys))}. "
            for title, keys in names.items()
            if keys
        ]
        if report and not errors:
            report.append(_mend_of_names(state_dict, loading.missing, loading.unexpected))
        errors = [*report, *errors]
    if errors:
        listed = "\n\t".join(errors)
        raise ArgumentError(
            f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{listed}"
        )
    loading.run()
    return IncompatibleKeys(loading.missing, loading.unexpected)


def load_members(
    self: Module,
    state_dict: Mapping[str, Any],
    prefix: str,
    local_metadata: Mapping[str, Any],
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Load the parameters and buffers of a module that fit, and report on the others."""
    assign = local_metadata.get("assign_to_params_buffers", False)
    loading = _Loading(assign, {prefix[:-1]: local_metadata})
    loading.compare(self, state_dict, prefix)
    loading.run()
    missing_keys += loading.missing
    unexpected_keys += loading.unexpected if strict else []
    error_msgs += loading.errors


def _mend_of_names(
    state_dict: Mapping[str, Any], missing: Sequence[str], unexpected: Sequence[str]
) -> str:
    """Return what to load if the names are those of the module, but for a prefix or a level."""
    for key in unexpected:
        value = state_dict.get(key)  # a hook may have added any key
        if isinstance(value, Mapping) and set(missing) <= value.keys():
            return f"The names are in an entry of the file: write load_state_dict(state[{key!r}])."
    renamed = "write load_state_dict({{{}: value for name, value in state.items()}})."
    if missing and len(missing) == len(unexpected):
        own, given = missing[0], unexpected[0]
        for longer, shorter, form in (
            (given, own, "name.removeprefix({!r})"),
            (own, given, "{!r} + name"),
        ):
            prefix = longer.removesuffix(shorter)
            pairs = (unexpected, missing) if longer is given else (missing, unexpected)
            if prefix != longer and list(pairs[0]) == [prefix + name for name in pairs[1]]:
                return f"The names differ by {prefix!r}: {renamed.format(form.format(prefix))}"
    return "With strict=False, what is there is loaded and the rest is left alone."


def _quoted(key: str) -> str:
    return f'"{key}"'


@no_grad()
def _copy(value: Tensor, given: Tensor) -> None:
    value.copy_(given)


def _assign(module: Module, name: str, given: Tensor) -> None:
    before = module.__dict__[name]
    if is_parameter(before) and not is_parameter(given):
        given = Parameter(given, before.requires_grad)
    module.__dict__[name] = given if is_parameter(given) else make(given._array, None)
