"""Pruning: masks that set elements or channels of parameters to zero."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.creation import ones_like, zeros
from chainrule.errors import ArgumentError, ArgumentTypeError, OutOfBoundsError
from chainrule.linalg import norm
from chainrule.nn.modules.hooks import take_pre_hook
from chainrule.nn.modules.module import Module
from chainrule.nn.utils.convert_parameters import parameters_to_vector
from chainrule.random import rand

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]

M = TypeVar("M", bound=Module)


class BasePruningMethod(ABC):
    """The base class of pruning methods, which are hooks before calls.

    A subclass has `compute_mask` and ``PRUNING_TYPE``: "unstructured" for methods that look at
    single elements, "structured" for those of channels, along their attribute ``dim``, and
    "global" for others.
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str

    @property
    def name(self) -> str:
        """The name of the pruned tensor."""
        return self._tensor_name

    def __call__(self, module: Module, inputs: Any) -> None:
        """Set the pruned tensor, before a call."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask.

        Parameters
        ----------
        t : Tensor
            The tensor to prune, or the importance of its elements.
        default_mask : Tensor, shape of `t`
            The mask so far, or ones.
        """

    def apply_mask(self, module: Module) -> Tensor:
        """Return the original tensor times the mask."""
        mask: Tensor = getattr(module, f"{self._tensor_name}_mask")
        original: Tensor = getattr(module, f"{self._tensor_name}_orig")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prune a tensor of a module, on top of what is pruned already.

        Parameters
        ----------
        module, name
            The module, and the name of its parameter.
        importance_scores : Tensor, shape of the parameter, optional
            The importance of its elements: their values if left out.
        *args, **kwargs
            Arguments of the class.

        Returns
        -------
        BasePruningMethod
            The hook: a `PruningContainer` if the tensor was pruned before.
        """
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        value: Any = getattr(module, name)
        scores = value if importance_scores is None else importance_scores
        if scores.shape != value.shape:
            raise ArgumentError(
                "importance_scores should have the same shape as parameter "
                f"{name} of {module}, got {list(scores.shape)} and {list(value.shape)}"
            )
        before = take_pre_hook(module, BasePruningMethod, name, remove=False)
        with no_grad():  # nothing is changed before the mask is there
            if before is None:
                mask = method.compute_mask(scores.detach(), ones_like(value))
            else:
                so_far = getattr(module, f"{name}_mask")
                mask = _combined(method, scores.detach(), so_far.detach())
        hook = method
        if before is None:
            delattr(module, name)
            module.register_parameter(f"{name}_orig", value)
        else:
            take_pre_hook(module, BasePruningMethod, name)
            earlier = before if isinstance(before, PruningContainer) else [before]
            hook = PruningContainer(*earlier, method)
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, hook.apply_mask(module))
        module.register_forward_pre_hook(hook)
        return hook

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """Return a tensor times the mask that this method computes of it, or of its importance."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise ArgumentError(
                "importance_scores should have the same shape as tensor t, got "
                f"{list(scores.shape)} and {list(t.shape)}"
            )
        with no_grad():
            so_far = ones_like(t.detach()) if default_mask is None else default_mask
            mask = self.compute_mask(scores.detach(), default_mask=so_far)
        return t * mask

    def remove(self, module: Module) -> None:
        """Make the pruned tensor the parameter, under its own name again."""
        name = self._tensor_name
        weight = self.apply_mask(module).detach()
        original: Any = getattr(module, f"{name}_orig")
        for each in (name, f"{name}_orig", f"{name}_mask"):
            delattr(module, each)
        original.data = weight
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Pruning methods of one tensor, one after another; each prunes what the others left.

    Parameters
    ----------
    *args : BasePruningMethods
        For the same tensor.
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method at the end."""
        if not isinstance(method, BasePruningMethod):
            raise ArgumentTypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ArgumentError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask of the last method, which prunes what `default_mask` leaves."""
        return _combined(self._pruning_methods[-1], t, default_mask)


def _combined(method: BasePruningMethod, t: Tensor, mask: Tensor) -> Tensor:
    """Return a mask with what a method prunes of the elements that it leaves."""
    mask = mask.to(t.dtype)
    if method.PRUNING_TYPE == "unstructured":
        left: Any = mask == 1
    elif method.PRUNING_TYPE == "structured":
        dim = method.dim % t.ndim  # type: ignore[attr-defined]  # every structured method has it
        channels = mask.movedim(dim, 0).reshape(t.shape[dim], -1).sum(1) != 0
        left = (slice(None),) * dim + (channels,)
    elif method.PRUNING_TYPE == "global":
        left = ...
    else:
        raise ArgumentError(
            f"{type(method).__name__}: PRUNING_TYPE is unstructured, structured or global, got "
            f"{method.PRUNING_TYPE!r}"
        )
    combined = mask.clone()
    combined[left] = method.compute_mask(t[left], default_mask=mask[left])
    return combined


class _Amount(BasePruningMethod):
    """A method that prunes a number of units, or a fraction of them."""

    amount: float

    def __init__(self, amount: float) -> None:
        if not isinstance(amount, int | float | Real):
            raise ArgumentTypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or (not isinstance(amount, Integral) and amount > 1):
            raise ArgumentError(
                f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
                "integer"
            )
        self.amount = amount

    def _count(self, units: int) -> int:
        """Return how many of the units are to be pruned."""
        if isinstance(self.amount, Integral):
            count = int(self.amount)
            if count > units:
                raise ArgumentError(
                    f"amount={count} should be smaller than the number of parameters to "
                    f"prune={units}"
                )
            return count
        return round(self.amount * units)

    def _without(self, mask: Tensor, importance: Tensor) -> Tensor:
        """Return the mask without its least important elements."""
        flat = mask.reshape(-1).clone()
        count = self._count(flat.numel())
        flat[importance.reshape(-1).topk(count, largest=False).indices] = 0
        return flat.reshape(mask.shape)

    def _channels(self, mask: Tensor, importance: Tensor, dim: int) -> Tensor:
        """Return the mask without the least important channels."""
        kept = zeros(mask.shape[dim], dtype=mask.dtype, device=mask.device)
        count = importance.numel() - self._count(importance.numel())
        kept[importance.topk(count, largest=True).indices] = 1
        shape = [1] * mask.ndim
        shape[dim] = -1
        return mask * kept.reshape(shape)

    def _check_channels(self, t: Tensor, dim: int) -> None:
        if t.ndim <= 1:
            raise ArgumentError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor "
                f"of shape {list(t.shape)} with {t.ndim} dims"
            )
        if not -t.ndim <= dim < t.ndim:
            raise OutOfBoundsError(f"Invalid index {dim} for tensor of size {list(t.shape)}")


class Identity(BasePruningMethod):
    """Prunes nothing: a parameter gets a mask of ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask so far."""
        return default_mask


class RandomUnstructured(_Amount):
    """Prunes elements at random.

    Parameters
    ----------
    amount : int or float
        The number of elements, or the fraction.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask without elements drawn at random."""
        return self._without(default_mask, rand(default_mask.shape))


class L1Unstructured(_Amount):
    """Prunes the elements of least magnitude.

    Parameters
    ----------
    amount : int or float
        The number of elements, or the fraction.
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask without the elements of least magnitude."""
        return self._without(default_mask, t.abs())


class RandomStructured(_Amount):
    """Prunes channels at random.

    Parameters
    ----------
    amount : int or float
        The number of channels, or the fraction.
    dim : int, default -1
        The dimension that counts them.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask without channels drawn at random."""
        self._check_channels(t, self.dim)
        return self._channels(default_mask, rand(t.shape[self.dim]), self.dim)


class LnStructured(_Amount):
    """Prunes the channels of least norm.

    Parameters
    ----------
    amount : int or float
        The number of channels, or the fraction.
    n : int, float or inf
        The order of the norm.
    dim : int, default -1
        The dimension that counts them.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n, self.dim = n, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask without the channels of least norm."""
        self._check_channels(t, self.dim)
        rows = t.movedim(self.dim, 0).reshape(t.shape[self.dim], -1)
        order = 2 if self.n == "fro" else self.n
        return self._channels(default_mask, norm(rows, order, dim=1), self.dim)


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask.

    Parameters
    ----------
    mask : Tensor
        0 or False where elements are pruned.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the product of both masks."""
        if default_mask.shape != self.mask.shape:
            raise ArgumentError(
                f"custom_from_mask: expected a mask of shape {list(default_mask.shape)}, got "
                f"{list(self.mask.shape)}"
            )
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: M, name: str) -> M:
    """Give a parameter a mask of ones; return the module.

    Examples
    --------
    >>> from chainrule import nn
    >>> list(identity(nn.Linear(2, 3), "weight").state_dict())
    ['bias', 'weight_orig', 'weight_mask']
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: M, name: str, amount: float) -> M:
    """Prune elements of a parameter at random; return the module.

    Parameters
    ----------
    module, name
        The module, and the name of its parameter.
    amount : int or float
        The number of elements, or the fraction.

    Examples
    --------
    >>> from chainrule import nn
    >>> layer = random_unstructured(nn.Linear(2, 3), "weight", amount=1)
    >>> (layer.weight == 0).sum().item()
    1
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: M, name: str, amount: float, importance_scores: Tensor | None = None
) -> M:
    """Prune the elements of least magnitude of a parameter; return the module.

    Parameters
    ----------
    module, name
        The module, and the name of its parameter.
    amount : int or float
        The number of elements, or the fraction.
    importance_scores : Tensor, shape of the parameter, optional
        Is looked at instead of its elements.

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = cr.nn.Linear(3, 1)
    >>> layer.weight.data = cr.tensor([[3.0, -1.0, 2.0]])
    >>> l1_unstructured(layer, "weight", amount=1).weight.tolist()
    [[3.0, -0.0, 2.0]]
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: M, name: str, amount: float, dim: int) -> M:
    """Prune channels of a parameter, along `dim`, at random; return the module.

    Examples
    --------
    >>> from chainrule import nn
    >>> layer = random_structured(nn.Linear(2, 3), "weight", amount=1, dim=0)
    >>> (layer.weight == 0).all(1).sum().item()
    1
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: M,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> M:
    """Prune the channels of least norm of a parameter; return the module.

    Parameters
    ----------
    module, name
        The module, and the name of its parameter.
    amount : int or float
        The number of channels, or the fraction.
    n : int, float or inf
        The order of the norm.
    dim : int
        The dimension that counts channels.
    importance_scores : Tensor, shape of the parameter, optional
        Is looked at instead of its elements.

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = cr.nn.Linear(2, 2, bias=False)
    >>> layer.weight.data = cr.tensor([[3.0, 2.0], [1.0, 1.0]])
    >>> ln_structured(layer, "weight", amount=1, n=2, dim=0).weight.tolist()
    [[3.0, 2.0], [0.0, 0.0]]
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


@no_grad()
def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters together, as if they were one.

    Parameters
    ----------
    parameters : iterable of (Module, str)
        The modules, and the names of their parameters.
    pruning_method : class of pruning methods
        An unstructured one.
    importance_scores : dict, optional
        Tensors to look at instead of parameters, by module and name.
    **kwargs
        Arguments of the class, such as `amount`.

    Examples
    --------
    >>> from chainrule import nn
    >>> net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    >>> pairs = [(net[0], "weight"), (net[1], "weight")]
    >>> global_unstructured(pairs, L1Unstructured, amount=5)
    >>> sum((layer.weight == 0).sum().item() for layer in net)
    5
    """
    if not isinstance(parameters, Iterable):
        raise ArgumentTypeError("global_unstructured(): parameters is not an Iterable")
    if importance_scores is not None and not isinstance(importance_scores, dict):
        raise ArgumentTypeError("global_unstructured(): importance_scores must be of type dict")
    pairs, scores = list(parameters), importance_scores or {}
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise ArgumentTypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    values = [getattr(module, name) for module, name in pairs]
    looked_at = [scores.get(pair, value) for pair, value in zip(pairs, values, strict=True)]
    so_far = [getattr(module, f"{name}_mask", None) for module, name in pairs]
    masks = [ones_like(v) if m is None else m for v, m in zip(values, so_far, strict=True)]
    mask = _combined(method, parameters_to_vector(looked_at), parameters_to_vector(masks))
    start = 0
    for (module, name), value in zip(pairs, values, strict=True):
        part = mask[start : start + value.numel()]
        custom_from_mask(module, name, part.reshape(value.shape))
        start += value.numel()


def custom_from_mask(module: M, name: str, mask: Tensor) -> M:
    """Prune a parameter by a mask, 0 where elements are pruned; return the module.

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = custom_from_mask(cr.nn.Linear(2, 3), "bias", cr.tensor([0, 1, 0]))
    >>> (layer.bias == 0).tolist()
    [True, False, True]
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: M, name: str) -> M:
    """Make a pruned tensor an ordinary parameter again, with its zeros; return the module.

    Examples
    --------
    >>> from chainrule import nn
    >>> layer = random_unstructured(nn.Linear(2, 3), "weight", amount=1)
    >>> list(remove(layer, "weight").state_dict())
    ['bias', 'weight']
    """
    hook: Any = take_pre_hook(module, BasePruningMethod, name)
    if hook is None:
        raise ArgumentError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    hook.remove(module)
    return module


def is_pruned(module: Module) -> bool:
    """Return whether a module, or one below it, has a pruned parameter.

    Examples
    --------
    >>> from chainrule import nn
    >>> is_pruned(nn.Linear(2, 3))
    False
    """
    hooks = [each._hooks.of("pre") for each in module.modules() if each._hooks is not None]
    return any(isinstance(hook, BasePruningMethod) for found in hooks for _, hook in found)
