"""Lazy modules: parameters that get their shapes from the first input."""

from __future__ import annotations

from typing import Any, ClassVar

from chainrule.nn.modules.module import Module
from chainrule.nn.parameter import is_uninitialized

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(Module):
    """The base class of modules whose parameters get their shapes from the first input.

    A subclass also has the class of the ordinary module as a base, makes its parameters of
    `UninitializedParameter` in ``__init__``, and sets their shapes in `initialize_parameters`.
    The first call does this, and makes the module one of the class `cls_to_become`.

    Examples
    --------
    >>> import chainrule as cr
    >>> net = cr.nn.Sequential(cr.nn.LazyLinear(4), cr.nn.ReLU())
    >>> net(cr.ones(2, 3)).shape
    (2, 4)
    >>> net[0]
    Linear(in_features=3, out_features=4, bias=True)
    """

    cls_to_become: ClassVar[type[Module] | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register_load_state_dict_pre_hook(_materialize_from)
        self.register_forward_pre_hook(_infer_parameters, with_kwargs=True)

    def has_uninitialized_params(self) -> bool:
        """Return whether parameters or buffers have no shape yet."""
        return any(map(is_uninitialized, [*self._parameters.values(), *self._buffers.values()]))

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Set the shapes of the parameters by the arguments of a call; every subclass does it."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )


def _infer_parameters(module: Any, args: Any, kwargs: Any) -> None:
    """Set the shapes by the first call: a hook, which removes itself."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(
            f"module {module._get_name()} has not been fully initialized: its "
            "initialize_parameters materializes only some of its parameters"
        )
    module._hooks.remove("pre", lambda hook: hook[1] is _infer_parameters)
    module._hooks.remove("load_pre", lambda pair: pair[1] is _materialize_from)
    if not module._hooks.any:
        module._hooks = None
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


def _materialize_from(module: Module, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    """Set the shapes by a state dict that is loaded: a hook."""
    for name, value in [*module._parameters.items(), *module._buffers.items()]:
        given = state.get(prefix + name)
        if is_uninitialized(value) and given is not None and not is_uninitialized(given):
            value.materialize(tuple(given.shape))
