"""A program as users write it: it runs, and type checkers at their strictest find nothing in it.

`assert_type` holds what the checkers infer. The program is run by tests/test_typing.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np

import chainrule as cr
from chainrule import Tensor
from chainrule.nn import functional as F

# --- functions ------------------------------------------------------------------------------------


def activations(x: Tensor) -> Tensor:
    """Compute with functions of one and two tensors, arrays and numbers among them."""
    y = cr.sin(x) + cr.cos(x) * cr.tanh(x) - cr.exp(-x) / cr.sqrt(cr.abs(x) + 1)
    y = cr.where(x > 0, cr.log1p(cr.relu(x)), cr.sigmoid(x)) + y
    y = cr.maximum(y, -1.0) + cr.minimum(y, np.float32(2.0)) + cr.hypot(y, np.ones(3, np.float32))
    y = cr.clamp(y, min=-10, max=10) + cr.erf(y) + cr.special.ndtr(y)
    assert_type(cr.atan2(y, 2), Tensor)
    return cr.softmax(y, dim=-1)


def shapes(x: Tensor) -> Tensor:
    """Reshape, join and reduce."""
    matrix = cr.reshape(cr.arange(6.0), 2, 3)
    both = cr.cat([matrix, cr.ones(2, 3), cr.zeros_like(matrix)], dim=0)
    stacked = cr.stack([both, cr.full((6, 3), 0.5)]).permute(2, 0, 1)
    assert_type(stacked.shape, cr.Size)
    assert_type(both.ndim, int)
    first, second = cr.split(both, 3)[:2]
    columns = cr.transpose(first, 0, 1) @ second
    assert_type(columns, Tensor)
    total = cr.einsum("ij,jk->ik", columns, cr.eye(3)).sum(dim=0, keepdim=True)
    best = cr.argmax(total, dim=1)
    picked = cr.gather(total, 1, best.unsqueeze(1))
    return cr.concatenate([picked.flatten(), cr.cumsum(x, 0), cr.mean(x, dim=0, keepdim=True)])


def factors(matrix: Tensor) -> Tensor:
    """Use linear algebra, Fourier transforms and random numbers."""
    symmetric = matrix @ matrix.mT + cr.eye(3)
    values, vectors = cr.linalg.eigh(symmetric)
    assert_type(values, Tensor)
    solution = cr.linalg.solve(symmetric, vectors)
    sign, logarithm = cr.linalg.slogdet(symmetric)
    spectrum = cr.fft.rfft(solution.ravel())
    noise = cr.random.normal(0.0, 1.0, (3,)) + cr.randn(3) + cr.rand(3)
    assert_type(spectrum.abs(), Tensor)
    return cr.linalg.norm(solution) + sign * logarithm + spectrum.real.sum() + noise.std()


# --- methods, operators, indexing -----------------------------------------------------------------


def methods(x: Tensor) -> Tensor:
    """Use methods, in-place methods, operators from both sides, and indices."""
    y = x.sin().exp().log1p().square().clamp(0, 5).reshape(-1)
    assert_type(x.sum(), Tensor)
    assert_type(x.mean(dim=0).item(), Any)
    assert_type(x.equal(y), bool)
    z = (2 * y + 1) / (y**2 + 1) - y // 2 + y % 3
    z = z.detach().clone().add_(1).mul_(y.detach()).clamp_(min=0)
    z += 1
    z[0] = 7.0
    z[1:] = z[1:].flip(0)
    mask = (z > 1) & ~(z == 3) | (z != z)
    assert_type(mask, Tensor)
    assert_type(z == 1, Tensor)
    assert_type(z.max(), Tensor)
    assert_type(z.sort().values, Tensor)
    quotient, rest = divmod(z, 2)
    assert_type(quotient, Tensor)
    rows = z.unsqueeze(0).expand(2, -1).T.contiguous()
    counted = mask.int().sum() + rows.to(cr.float64).float().numel()
    assert_type(z.requires_grad_(), Tensor)
    return abs(rest).sum() + counted + 3.0 ** z.max() + np.float64(2.0)


# --- a function with a derivative of its own ------------------------------------------------------


@cr.autograd_function
def scaled_square(ctx: Any, x: Tensor, scale: float) -> Tensor:
    """Return scale · x²."""
    ctx.save_for_backward(x=x)
    ctx.scale = scale
    return scale * x * x


@scaled_square.backward
def _(ctx: Any, grad: Tensor) -> dict[str, Tensor]:
    return {"x": 2 * ctx.scale * ctx.saved_variables.x * grad}


@scaled_square.jvp
def _(ctx: Any, tangent: Tensor, scale: None) -> Tensor:
    doubled: Tensor = 2 * ctx.scale * ctx.saved_variables.x
    return doubled * tangent


class Cube(cr.autograd.Function):
    """The same, as PyTorch writes it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Return x³."""
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """Return the gradient."""
        (x,) = ctx.saved_tensors
        slope: Tensor = 3 * x**2
        return slope * grad


# --- derivatives ----------------------------------------------------------------------------------


def loss_of(w: Tensor) -> Tensor:
    """Return a number to differentiate."""
    return (w.tanh() * cr.tensor([1.0, 2.0, 3.0])).pow(2).sum()


def running_sum(total: Tensor, x: Tensor) -> tuple[Tensor, None]:
    """Add one element: the step of a scan."""
    return total + x, None


def transforms(w: Tensor) -> Tensor:
    """Transform functions."""
    gradient = cr.grad(loss_of)
    assert_type(gradient, Callable[..., Any])
    value, slope = cr.value_and_grad(loss_of)(w)
    out, tangent = cr.jvp(loss_of, w, cr.ones(3))
    _, pull = cr.vjp(cr.sin, w)
    jacobian = cr.jacobian(cr.sin)(w)
    hessian = cr.hessian(loss_of)(w)
    each = cr.vmap(gradient)(cr.stack([w, 2 * w]))
    product = cr.hvp(loss_of, w, cr.ones(3))
    reverse = cr.func.jacrev(cr.cos)(w)
    last, _ = cr.scan(running_sum, cr.tensor(0.0), w)
    assert_type(last, Tensor)
    parts = [slope, tangent, pull(cr.ones(3))[0], jacobian, hessian, each, product, reverse]
    return sum((cr.sum(part) for part in parts), value + out + last)


def backward(w: Tensor) -> Tensor:
    """Run backward passes."""
    w = w.detach().requires_grad_()
    handle = w.register_hook(lambda grad: grad * 2)
    (scaled_square(w, scale=3.0) + Cube.apply(w)).sum().backward()
    handle.remove()
    assert w.grad is not None
    assert_type(w.grad, Tensor)
    again: tuple[Tensor, ...] = cr.autograd_grad(loss_of(w), [w], create_graph=True)
    by_name: dict[str, Tensor] = cr.autograd_grad(loss_of(w), {"w": w})
    assert cr.checks.gradcheck(cr.sin, (cr.tensor([0.5], dtype=cr.float64, requires_grad=True),))
    with cr.no_grad():
        updated = w - 0.1 * w.grad
    with cr.enable_grad(), cr.detect_anomaly():
        assert cr.is_grad_enabled()
    return updated + again[0] + by_name["w"]


# --- training -------------------------------------------------------------------------------------


class Network:
    """Two layers."""

    def __init__(self) -> None:
        self.first = cr.nn.Linear(3, 8)
        self.weight = cr.randn(2, 8, requires_grad=True)
        self.bias = cr.zeros(2, requires_grad=True)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the logits."""
        hidden = F.dropout(F.gelu(self.first(x)), p=0.1, training=False)
        return F.linear(F.layer_norm(hidden, [8]), self.weight, self.bias)

    @property
    def parameters(self) -> list[Tensor]:
        """Return the leaves to train."""
        return [self.weight, self.bias]


@cr.no_grad()
def accuracy(network: Network, x: Tensor, target: Tensor) -> float:
    """Return the share of right answers."""
    right = network(x).argmax(dim=1) == target
    return float(right.float().mean())


def train(steps: int) -> float:
    """Train, and return the accuracy."""
    cr.manual_seed(0)
    network = Network()
    x, target = cr.randn(16, 3), cr.randint(0, 2, (16,))
    optimizer = cr.optim.Adam(network.parameters, lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(network(x), target) + 0.01 * F.mse_loss(network.bias, cr.zeros(2))
        loss.backward()
        cr.nn.utils.clip_grad_norm_(network.parameters, 1.0)
        optimizer.step()
    return accuracy(network, x, target)


@cr.compile
def energy(x: Tensor, k: Tensor) -> Tensor:
    """Return the energy of springs."""
    return (k * x**2).sum() / 2


# --- NumPy and the array API ----------------------------------------------------------------------


def arrays(x: Tensor) -> np.ndarray[Any, Any]:
    """Go to NumPy and back."""
    xp = cr.array_api
    assert_type(xp.sin(x), Tensor)
    shared = cr.from_numpy(np.arange(3.0))
    back = xp.astype(xp.add(shared, cr.asarray([1.0, 2.0, 3.0])), cr.float32)
    array: np.ndarray[Any, Any] = (back + x.detach()).numpy()
    return array


def main() -> None:
    """Run all of it."""
    w = cr.tensor([0.5, -1.0, 2.0], requires_grad=True)
    assert activations(w).shape == (3,)
    assert shapes(w).ndim == 1
    assert factors(cr.diag(w.detach()) + 1).numel() == 1
    assert methods(w).dtype == cr.float64 or methods(w).is_floating_point()
    assert transforms(w).isfinite().all()
    assert backward(w).shape == w.shape
    assert 0 <= train(3) <= 1
    energy(w, cr.ones(3)).backward()
    assert w.grad is not None
    assert arrays(w).shape == (3,)


if __name__ == "__main__":
    main()
