"""Weight and spectral normalisation by hooks that set the weight before each call."""

from __future__ import annotations

from typing import Any, TypeVar

from chainrule.arguments import one_dim
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.nn import functional as F
from chainrule.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from chainrule.nn.modules.hooks import take_pre_hook
from chainrule.nn.modules.module import Module
from chainrule.nn.parameter import Parameter
from chainrule.random import randn

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """Return a weight as a matrix, with a row for each position of `dim`."""
    return weight.movedim(dim, 0).reshape(weight.shape[dim], -1)


# --- weight normalisation -------------------------------------------------------------------------


def norm_except_dim(v: Tensor, dim: int | None) -> Tensor:
    """Return the norms over all dimensions but one, which are kept; over all for None."""
    if dim is None or dim == -1:
        return v.norm()
    shape = [1] * v.ndim
    shape[one_dim(dim, v.ndim)] = -1
    return as_matrix(v, dim).norm(dim=1).reshape(shape)


class WeightNorm:
    """The hook of `weight_norm`."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def compute_weight(self, module: Module) -> Tensor:
        """Return the weight."""
        v: Tensor = getattr(module, f"{self.name}_v")
        g: Tensor = getattr(module, f"{self.name}_g")
        return v * (g / norm_except_dim(v, self.dim))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Make a weight the product of a length and a direction, w = g v / ‖v‖.

    `nn.utils.parametrizations.weight_norm` does the same without a hook.

    Parameters
    ----------
    module : Module
        With a parameter of this name.
    name : str, default 'weight'
        The parameter: parameters ``weight_g`` and ``weight_v`` take its place.
    dim : int or None, default 0
        The dimension for each of whose positions there is a length; None for one length of all.

    Returns
    -------
    Module
        `module`, with a hook that computes the weight before each call.

    References
    ----------
    .. [1] T. Salimans, D. P. Kingma, Weight normalization, NeurIPS 2016.

    Examples
    --------
    >>> from chainrule import nn
    >>> list(nn.utils.weight_norm(nn.Linear(3, 2)).state_dict())
    ['bias', 'weight_g', 'weight_v']
    """
    if take_pre_hook(module, WeightNorm, name, remove=False):
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    weight = getattr(module, name)
    hook = WeightNorm(name, dim)
    delattr(module, name)
    with no_grad():
        lengths = norm_except_dim(weight, dim)
    module.register_parameter(f"{name}_g", Parameter(lengths))
    module.register_parameter(f"{name}_v", Parameter(weight.detach().clone()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make a weight with weight normalisation a parameter again.

    Examples
    --------
    >>> from chainrule import nn
    >>> layer = nn.utils.weight_norm(nn.Linear(3, 2))
    >>> list(nn.utils.remove_weight_norm(layer).state_dict())
    ['bias', 'weight']
    """
    hook: Any = take_pre_hook(module, WeightNorm, name)
    if hook is None:
        raise ArgumentError(f"weight_norm of '{name}' not found in {module}")
    with no_grad():
        weight = hook.compute_weight(module)
    for each in (name, f"{name}_g", f"{name}_v"):
        delattr(module, each)
    module.register_parameter(name, Parameter(weight))
    return module


# --- spectral normalisation -----------------------------------------------------------------------


class SpectralNorm:
    """The hook of `spectral_norm`."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Return the weight; power iterations update the singular vectors in place."""
        weight: Tensor = getattr(module, f"{self.name}_orig")
        u: Tensor = getattr(module, f"{self.name}_u")
        v: Tensor = getattr(module, f"{self.name}_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(matrix.mH.mv(u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(matrix.mv(v), dim=0, eps=self.eps))
            if self.n_power_iterations > 0:
                u, v = u.clone(), v.clone()  # a later call may overwrite what this one saves
        return weight / u.vdot(matrix.mv(v))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> M:
    """Divide a weight by its largest singular value, estimated by power iterations.

    `nn.utils.parametrizations.spectral_norm` does the same without a hook.

    Parameters
    ----------
    module : Module
        With a parameter of this name.
    name : str, default 'weight'
        The parameter: ``weight_orig`` takes its place; ``weight_u`` and ``weight_v`` are buffers.
    n_power_iterations : int, default 1
        How many iterations each call in training makes.
    eps : number, default 1e-12
        Least norm of singular vectors.
    dim : int, optional
        The dimension of the outputs: 1 for transposed convolutions, else 0.

    Returns
    -------
    Module
        `module`, with a hook that computes the weight before each call.

    References
    ----------
    .. [1] T. Miyato, T. Kataoka, M. Koyama, Y. Yoshida, Spectral normalization for generative
       adversarial networks, ICLR 2018.

    Examples
    --------
    >>> from chainrule import nn
    >>> list(nn.utils.spectral_norm(nn.Linear(3, 2)).state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    if take_pre_hook(module, SpectralNorm, name, remove=False):
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    check_iterations(n_power_iterations)
    weight = getattr(module, name)
    hook = SpectralNorm(name, n_power_iterations, default_dim(module, dim), eps)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", weight)
    for suffix, size in zip("uv", as_matrix(weight.detach(), hook.dim).shape, strict=True):
        drawn = randn(size, dtype=weight.dtype, device=weight.device)
        module.register_buffer(f"{name}_{suffix}", F.normalize(drawn, dim=0, eps=eps))
    setattr(module, name, weight.detach())
    module.register_forward_pre_hook(hook)
    return module


def check_iterations(count: int) -> None:
    """Raise if a number of power iterations isn't positive."""
    if count <= 0:
        raise ArgumentError(
            "spectral_norm: Expected n_power_iterations to be positive, but got "
            f"n_power_iterations={count}"
        )


def default_dim(module: Module, dim: int | None) -> int:
    """Return the dimension of the outputs of a layer's weight."""
    if dim is not None:
        return dim
    return int(isinstance(module, ConvTranspose1d | ConvTranspose2d | ConvTranspose3d))


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make a weight with spectral normalisation a parameter again.

    Examples
    --------
    >>> from chainrule import nn
    >>> layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    >>> list(nn.utils.remove_spectral_norm(layer).state_dict())
    ['bias', 'weight']
    """
    hook: Any = take_pre_hook(module, SpectralNorm, name)
    if hook is None:
        raise ArgumentError(f"spectral_norm of '{name}' not found in {module}")
    with no_grad():
        weight = hook.compute_weight(module, False)
    for each in (name, f"{name}_orig", f"{name}_u", f"{name}_v"):
        delattr(module, each)
    module.register_parameter(name, Parameter(weight))
    return module
