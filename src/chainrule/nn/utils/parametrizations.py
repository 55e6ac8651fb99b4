"""Parametrizations: weight norm, spectral norm, and orthogonal matrices."""

from __future__ import annotations

from typing import Any

from chainrule import linalg
from chainrule.arguments import one_dim
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.creation import eye
from chainrule.errors import ArgumentError
from chainrule.linalg.deprecated import geqrf
from chainrule.nn import functional as F
from chainrule.nn.modules.module import Module
from chainrule.nn.utils.norm_hooks import as_matrix, check_iterations, default_dim, norm_except_dim
from chainrule.nn.utils.parametrize import register_parametrization
from chainrule.ops import allclose, cat, finfo, where
from chainrule.random import randn

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """Lengths and directions as a weight."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Make a weight the product of a length and a direction, w = g v / ‖v‖.

    Parameters
    ----------
    module : Module
        With a parameter of this name.
    name : str, default 'weight'
        The parameter: its originals are the lengths g and the directions v.
    dim : int or None, default 0
        The dimension for each of whose positions there is a length; None for one length of all.

    Returns
    -------
    Module
        `module`. State dicts of `nn.utils.weight_norm` load into it.

    References
    ----------
    .. [1] T. Salimans, D. P. Kingma, Weight normalization, NeurIPS 2016.

    Examples
    --------
    >>> from chainrule import nn
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(_: Any, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        for i, suffix in enumerate("gv"):
            if f"{prefix}{name}_{suffix}" in state:
                key = f"{prefix}parametrizations.{name}.original{i}"
                state[key] = state.pop(f"{prefix}{name}_{suffix}")

    module.register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """A weight over its largest singular value, with estimates of the singular vectors."""

    _u: Tensor
    _v: Tensor

    def __init__(
        self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        check_iterations(n_power_iterations)
        self.dim = one_dim(dim, weight.ndim)
        self.eps, self.n_power_iterations = eps, n_power_iterations
        if weight.ndim > 1:
            matrix = as_matrix(weight.detach(), self.dim)
            for name, size in zip(("_u", "_v"), matrix.shape, strict=True):
                drawn = randn(size, dtype=weight.dtype, device=weight.device)
                self.register_buffer(name, F.normalize(drawn, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _iterate(self, matrix: Tensor, count: int) -> None:
        with no_grad():
            for _ in range(count):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.mH.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:  # its singular value is its norm
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # a later call overwrites them
        return weight / u.vdot(matrix.mv(v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its largest singular value, estimated by power iterations.

    Parameters
    ----------
    module : Module
        With a parameter of this name.
    name : str, default 'weight'
        The parameter.
    n_power_iterations : int, default 1
        How many iterations are made each time the weight is computed in training.
    eps : number, default 1e-12
        Least norm of singular vectors.
    dim : int, optional
        The dimension of the outputs: 1 for transposed convolutions, else 0.

    Returns
    -------
    Module
        `module`.

    References
    ----------
    .. [1] T. Miyato, T. Kataoka, M. Koyama, Y. Yoshida, Spectral normalization for generative
       adversarial networks, ICLR 2018.

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = cr.nn.utils.parametrizations.spectral_norm(cr.nn.Linear(3, 2))
    >>> abs(cr.linalg.matrix_norm(layer.weight, 2).item() - 1) < 0.1
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentError(
            f"Module '{type(module).__name__}' has no parameter or buffer with name '{name}'"
        )
    made = _SpectralNorm(weight, n_power_iterations, default_dim(module, dim), eps)
    return register_parametrization(module, name, made)


class _Orthogonal(Module):
    """Matrices with orthonormal columns, or rows if there are fewer."""

    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ArgumentError(
                "orthogonal: The householder parametrization does not support complex tensors."
            )
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.shape[-2] < X.shape[-1]
        x = X.mT if wide else X
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            a = x.tril(-1)
            q = linalg.householder_product(a, 2 / (1 + (a * a).sum(-2)))
            # The diagonal chooses among rotations and reflections: elements of ±1.
            q = q * x.detach().diagonal(dim1=-2, dim2=-1).trunc().unsqueeze(-2)
        else:
            x = x.tril()
            if n != k:
                x = cat([x, x.new_zeros(*x.shape[:-1], n - k)], -1)
            a = x - x.mH
            one = eye(n, dtype=x.dtype, device=x.device)
            if self.orthogonal_map == "matrix_exp":
                q = linalg.matrix_exp(a)
            else:
                q = linalg.solve(one - a / 2, one + a / 2)
            q = q[..., :k]
        if self.use_trivialization:
            q = self.base @ q
        return q.mT if wide else q

    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ArgumentError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {Q.shape}."
            )
        wide = Q.shape[-2] < Q.shape[-1]
        q = Q.mT if wide else Q
        n, k = q.shape[-2:]
        if not self.use_trivialization:
            x = _reflections(q, self.orthogonal_map)
            return x.mT if wide else x
        if n != k:  # completed to a square matrix
            q = cat([q, randn(*q.shape[:-1], n - k, dtype=q.dtype, device=q.device)], -1)
        one = eye(n, dtype=q.dtype, device=q.device)
        near = 10 * n * finfo(q.dtype).eps
        if n == k and allclose(q.mH @ q, one.expand(q.shape), atol=near):
            self.base = q.clone()
        else:
            q, r = linalg.qr(q)
            self.base = q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
        # Zero reflections, and a diagonal that makes their product the identity.
        minus_one = -eye(*Q.shape[-2:], dtype=Q.dtype, device=Q.device)
        return minus_one.expand(Q.shape).clone()


def _reflections(q: Tensor, orthogonal_map: str) -> Tensor:
    """Return the original whose orthogonal matrix is q, by Householder reflections."""
    if orthogonal_map != "householder":
        raise NotImplementedError(
            "It is not possible to assign to the matrix exponential or the Cayley parametrizations "
            "when use_trivialization=False."
        )
    a, tau = geqrf(q)
    # R's diagonal is made positive; LAPACK gives 0 for a reflection that it leaves out.
    signs = a.diagonal(dim1=-2, dim2=-1).sign()
    signs = where(tau == 0, -signs, signs)
    one = eye(*a.shape[-2:], dtype=a.dtype, device=a.device)
    return a.tril(-1) + a.triu(1) + one * signs.unsqueeze(-2)


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Make a weight orthogonal: with orthonormal columns, or rows if there are fewer.

    Parameters
    ----------
    module : Module
        With a parameter of this name.
    name : str, default 'weight'
        The parameter, of shape (..., m, n).
    orthogonal_map : {'matrix_exp', 'cayley', 'householder'}, optional
        The map from all matrices to orthogonal ones: the exponential of a skew-symmetric matrix A,
        (I - A/2)⁻¹(I + A/2), or a product of reflections. "matrix_exp" for square or complex
        matrices if left out, else "householder".
    use_trivialization : bool, default True
        Multiply by a fixed matrix, so that the weight can be assigned with every map [1]_.

    Returns
    -------
    Module
        `module`.

    Raises
    ------
    ArgumentError
        If the tensor is missing or no matrix, or the map unknown.

    References
    ----------
    .. [1] M. Lezcano-Casado, Trivializations for gradient-based optimization on manifolds,
       NeurIPS 2019.

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = cr.nn.utils.parametrizations.orthogonal(cr.nn.Linear(2, 4))
    >>> cr.allclose(layer.weight.T @ layer.weight, cr.eye(2), atol=1e-5)
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ArgumentError(
            f"Module '{type(module).__name__}' has no parameter or buffer with name '{name}'"
        )
    if weight.ndim < 2:
        raise ArgumentError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    square = weight.shape[-2] == weight.shape[-1]
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ArgumentError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: '
            f"{orthogonal_map}"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
