"""Programs that run eagerly in chainrule and in PyTorch: each is one text for both libraries.

A builder gets the library and `t`, which makes a tensor of the measured dtype (integers and masks
keep theirs). It returns a loss and the arrays that the loss is differentiated by.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

Array = Any
Make = Callable[[Any], Any]
Built = tuple[Callable[..., Any], list[Array]]


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def integers(high: int, *shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, high, *shape]).integers(0, high, shape)


# --- statistics -----------------------------------------------------------------------------------


def mixture(lib: Any, t: Make) -> Built:
    """Gaussian mixture of ADBench: n 1,000, d 10, k 25, with full covariances."""
    n, d, k = 1000, 10, 25
    x, rows, cols = t(normal(n, d)), *map(t, np.tril_indices(d, -1))

    def loss(alphas: Any, means: Any, factors: Any) -> Any:
        logs = factors[:, :d]
        lower = lib.zeros((k, d, d), dtype=x.dtype)
        lower[:, rows, cols] = factors[:, d:]
        centred = x[:, None, :] - means
        turned = lib.exp(logs) * centred + (lower @ centred[..., None])[..., 0]
        terms = alphas + logs.sum(1) - 0.5 * (turned**2).sum(-1)
        fit = lib.logsumexp(terms, 1).sum() - n * lib.logsumexp(alphas, 0)
        prior = 0.5 * (lib.exp(2 * logs).sum() + (factors[:, d:] ** 2).sum()) - logs.sum()
        return prior - fit

    return loss, [normal(k), normal(k, d), normal(k, d * (d + 1) // 2) * 0.3]


def spherical_mixture(lib: Any, t: Make) -> Built:
    """Gaussian mixture of variance 1: n 1,000, d 10, k 25."""
    points, weights = t(normal(1000, 10)), t(normal(25))

    def loss(means: Any) -> Any:
        squares = (points * points).sum(-1)[:, None] + (means * means).sum(-1)[None, :]
        distances = squares - 2 * points @ means.T
        return -lib.logsumexp(weights - 0.5 * distances, -1).sum()

    return loss, [normal(25, 10, seed=1)]


def diagonal_mixture(lib: Any, t: Make) -> Built:
    """Gaussian mixture with diagonal covariances: n 1,000, d 4, k 5."""
    x = t(normal(1000, 4))

    def loss(w: Any, mean: Any, scale: Any) -> Any:
        z = (x[:, None] - mean) * lib.exp(-scale)
        parts = lib.log_softmax(w, 0) - 0.5 * (z**2).sum(-1) - scale.sum(-1)
        return -lib.logsumexp(parts, 1).sum()

    return loss, [normal(5), normal(5, 4), normal(5, 4) * 0.1]


def barrier(lib: Any, t: Make) -> Built:
    """Barrier option: 2,000 paths of 50 steps."""
    z = t(normal(2000, 50))

    def loss(s: Any, vol: Any) -> Any:
        moves = (0.02 - 0.5 * vol**2) / 50 + vol * 0.1414 * z
        paths = s * lib.exp(lib.cumsum(moves, 1))
        alive = lib.prod(lib.sigmoid((1.4 - paths) * 50), 1)
        return (lib.relu(paths[:, -1] - 1) * alive).mean()

    return loss, [1.0, 0.2]


def gaussian_process(lib: Any, t: Make) -> Built:
    """Gaussian process: marginal likelihood of 100 points."""
    x, y, eye = t(normal(100, 3)), t(normal(100)), t(np.eye(100))

    def loss(scale: Any, noise: Any) -> Any:
        distances = ((x[:, None] - x) ** 2 / scale**2).sum(-1)
        factor = lib.linalg.cholesky(lib.exp(-0.5 * distances) + noise * eye)
        z = lib.linalg.solve_triangular(factor, y[:, None], upper=False)
        return 0.5 * (z**2).sum() + lib.log(lib.diagonal(factor)).sum()

    return loss, [np.ones(3), 0.3]


def logistic(lib: Any, t: Make) -> Built:
    """Logistic regression: 5,000 × 50."""
    x, y = t(normal(5000, 50)), t(np.sign(normal(5000)))

    def loss(w: Any) -> Any:
        margins = y * (x @ w)
        return (lib.log1p(lib.exp(-lib.abs(margins))) + lib.relu(-margins)).mean()

    return loss, [normal(50) * 0.1]


# --- time series ----------------------------------------------------------------------------------


def kalman(lib: Any, t: Make) -> Built:
    """Kalman filter: 100 steps, 4 states, 2 observed."""
    a, h = t(np.eye(4) + 0.1 * np.eye(4, k=2)), t(np.eye(2, 4))
    ys, eye, two = t(normal(100, 2)), t(np.eye(4)), t(np.eye(2))

    def loss(q: Any, r: Any) -> Any:
        m, p, total = eye[0] * 0, eye, q * 0
        for y in ys:
            m, p = a @ m, a @ p @ a.T + q * eye
            s = h @ p @ h.T + r * two
            e = y - h @ m
            gain = lib.linalg.solve(s, h @ p).T
            total = total - 0.5 * (e @ lib.linalg.solve(s, e) + lib.linalg.slogdet(s)[1])
            m, p = m + gain @ e, p - gain @ h @ p
        return total

    return loss, [0.1, 0.5]


def hidden_markov(lib: Any, t: Make) -> Built:
    """Hidden Markov model: 200 symbols, 8 states."""
    index = t(integers(20, 200))

    def loss(a: Any, b: Any) -> Any:
        a, b = lib.log_softmax(a, 1), lib.log_softmax(b, 1).T[index]
        alpha = b[0]
        for i in range(1, 200):
            alpha = lib.logsumexp(alpha[:, None] + a, 0) + b[i]
        return -lib.logsumexp(alpha, 0)

    return loss, [normal(8, 8), normal(8, 20)]


def particles(lib: Any, t: Make) -> Built:
    """Particle filter: 200 particles, 50 steps."""
    ys, noise, places = t(normal(50)), t(normal(50, 200)), t((np.arange(200) + 0.5) / 200)

    def loss(a: Any, s: Any) -> Any:
        p, total = noise[0], a * 0
        for i in range(50):
            p = a * p + s * noise[i]
            weights = -0.5 * (ys[i] - p) ** 2
            mean = lib.logsumexp(weights, 0)
            ends = lib.cumsum(lib.exp(weights - mean), 0).detach()
            p, total = p[lib.searchsorted(ends, places).clamp(max=199)], total + mean
        return total

    return loss, [0.9, 0.5]


def recurrent(lib: Any, t: Make) -> Built:
    """Gated recurrent network: 64 characters, 16 units."""
    symbols = integers(20, 65)

    def loss(e: Any, u: Any, v: Any) -> Any:
        h, total = e[0, :16] * 0, 0.0
        for i in range(64):
            x, gates = e[int(symbols[i])], h @ u
            z, r = lib.sigmoid(x[:16] + gates[:16]), lib.sigmoid(x[16:32] + gates[16:32])
            h = (1 - z) * h + z * lib.tanh(x[32:] + r * gates[32:])
            total = total - lib.log_softmax(h @ v, 0)[int(symbols[i + 1])]
        return total

    return loss, [normal(20, 48) * 0.3, normal(16, 48) * 0.3, normal(16, 20) * 0.3]


# --- graphs and words -----------------------------------------------------------------------------


def messages(lib: Any, t: Make) -> Built:
    """Message passing: two layers, 10,000 edges, 2,000 nodes of 16 numbers."""
    source, target = t(integers(2000, 10000)), t(integers(2000, 10000, seed=1))
    start = t(normal(2000, 16))

    def loss(w: Any, u: Any) -> Any:
        out = start
        for last in (False, True):
            sent = lib.relu(lib.cat([out[source], out[target]], 1) @ w)
            total = lib.zeros((2000, 16), dtype=start.dtype).index_add(0, target, sent)
            out = total if last else lib.tanh(out @ u + total)
        return (out**2).mean()

    return loss, [normal(32, 16) * 0.2, normal(16, 16) * 0.2]


def words(lib: Any, t: Make) -> Built:
    """Bags of words: 64 texts of 50 words, 5,000 embeddings of 32 numbers."""
    index, labels = t(integers(5000, 64, 50)), t(integers(10, 64))

    def loss(e: Any, w: Any) -> Any:
        return lib.nn.functional.cross_entropy(e[index].mean(1) @ w, labels)

    return loss, [normal(5000, 32), normal(32, 10)]


def scattered(lib: Any, t: Make) -> Built:
    """Scatter: `scatter_add` of 1000 × 1000."""
    x, index = t(normal(1000, 1000)), t(integers(1000, 1000, 1000))
    return lambda y: x.scatter_add(1, index, y).sum(), [normal(1000, 1000, seed=1)]


def binned(lib: Any, t: Make) -> Built:
    """Histogram of weights: 100,000 in 500 bins, by `index_add`."""
    index, edge = t(integers(500, 100000)), t(normal(500))

    def loss(w: Any) -> Any:
        counts = lib.zeros(500, dtype=edge.dtype).index_add(0, index, w * w)
        return ((counts - edge) ** 2).sum()

    return loss, [normal(100000)]


# --- equations ------------------------------------------------------------------------------------


def newton(lib: Any, t: Make) -> Built:
    """Fixed point of 6 equations: 8 Newton steps."""
    zeros, eye = t(np.zeros(6)), t(np.eye(6))

    def loss(a: Any, b: Any) -> Any:
        x = zeros
        for _ in range(8):
            y = lib.tanh(a @ x + b)
            x = x - lib.linalg.solve(eye - (1 - y**2)[:, None] * a, x - y)
        return (x**2).sum()

    return loss, [normal(6, 6) * 0.3, normal(6)]


def heat(lib: Any, t: Make) -> Built:
    """Heat equation: 50 steps on 64 × 64 points, written in place."""

    def loss(u: Any, k: Any) -> Any:
        u = u * 1
        for _ in range(50):
            inner = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
            u = u.clone()
            u[1:-1, 1:-1] += k * inner
        return (u**2).sum()

    return loss, [normal(64, 64), 0.1]


def waves(lib: Any, t: Make) -> Built:
    """Waves on a staggered grid: 100 steps, 512 points."""
    start = t(np.exp(-(((np.arange(512) - 256) / 10.0) ** 2)))

    def loss(c: Any) -> Any:
        p, v = start, start[1:] * 0
        for _ in range(100):
            v = v - 0.3 * (p[1:] - p[:-1])
            p = p.clone()
            p[1:-1] -= 0.3 * c[1:-1] * (v[1:] - v[:-1])
        return (p**2).sum()

    return loss, [1 + normal(512) ** 2]


def predators(lib: Any, t: Make) -> Built:
    """Predators and prey: 100 Runge–Kutta steps of two equations."""
    start = t([1.0, 0.5])

    def loss(p: Any) -> Any:
        def slope(y: Any) -> Any:
            both = y[0] * y[1]
            return lib.stack([p[0] * y[0] - p[1] * both, p[2] * both - p[3] * y[1]])

        y, total = start, 0.0
        for _ in range(100):
            a = slope(y)
            b = slope(y + 0.025 * a)
            c = slope(y + 0.025 * b)
            y = y + 0.05 / 6 * (a + 2 * b + 2 * c + slope(y + 0.05 * c))
            total = total + (y**2).sum()
        return total

    return loss, [[1.0, 0.5, 0.3, 0.8]]


def control(lib: Any, t: Make) -> Built:
    """Linear-quadratic regulator: 60 Riccati steps, 5 states."""
    q, r = t(np.eye(5)), t(0.1 * np.eye(2))

    def loss(a: Any, b: Any) -> Any:
        p = q
        for _ in range(60):
            gain = lib.linalg.solve(r + b.T @ p @ b, b.T @ p @ a)
            p = q + a.T @ p @ (a - b @ gain)
        return (p**2).sum()

    return loss, [0.9 * np.eye(5) + 0.05 * normal(5, 5), normal(5, 2)]


def spline(lib: Any, t: Make) -> Built:
    """Natural cubic spline: 16 knots, 300 points."""
    knots, q, y0 = np.linspace(0, 1, 16), np.random.default_rng(0).random(300), normal(300)
    h = float(knots[1])
    dense = np.eye(16) * 4 + np.eye(16, k=1) + np.eye(16, k=-1)
    dense[[0, -1]] = np.eye(16)[[0, -1]]
    system, knots, q, wanted, zero = map(t, (dense, knots, q, y0, np.zeros(1)))

    def loss(y: Any) -> Any:
        bends = 6 / h**2 * (y[2:] - 2 * y[1:-1] + y[:-2])
        m = lib.linalg.solve(system, lib.cat([zero, bends, zero]))
        i = lib.searchsorted(knots, q) - 1
        a, b = (knots[i + 1] - q) / h, (q - knots[i]) / h
        cubic = (a**3 - a) * m[i] + (b**3 - b) * m[i + 1]
        return ((a * y[i] + b * y[i + 1] + cubic * h**2 / 6 - wanted) ** 2).mean()

    return loss, [normal(16)]


# --- images and networks --------------------------------------------------------------------------


def deconvolution(lib: Any, t: Make) -> Built:
    """Deconvolution: 128 × 128 pixels, Fourier transforms and total variation."""
    y, distance = t(normal(128, 128)), (np.arange(128) - 64) ** 2
    blur = t(np.fft.rfft2(np.exp(-np.add.outer(distance, distance) / 20)))

    def loss(x: Any) -> Any:
        rest = lib.fft.irfft2(lib.fft.rfft2(x) * blur) - y
        down, right = (x[1:] - x[:-1])[:, 1:], (x[:, 1:] - x[:, :-1])[1:]
        return (rest**2).sum() + 0.1 * lib.sqrt(down**2 + right**2 + 1e-3).sum()

    return loss, [normal(128, 128, seed=1)]


def lens(lib: Any, t: Make) -> Built:
    """Hologram: phase of 64 × 64 pixels, a Fourier transform and an intensity."""
    target = t(np.random.default_rng(0).random((64, 64)))

    def loss(phase: Any) -> Any:
        field = lib.fft.fft2(lib.cos(phase) + 1j * lib.sin(phase)) / 64
        return ((lib.abs(field) ** 2 - target) ** 2).mean()

    return loss, [normal(64, 64)]


def network(lib: Any, t: Make) -> Built:
    """Network: four layers of 32 units, 64 examples."""
    x, y = t(normal(64, 32)), t(normal(64, 1))

    def loss(*weights: Any) -> Any:
        h = x
        for w in weights[:-1]:
            h = lib.tanh(h @ w)
        return ((h @ weights[-1] - y) ** 2).mean()

    return loss, [*(normal(32, 32, seed=i) * 0.2 for i in range(3)), normal(32, 1) * 0.2]


def ensemble(lib: Any, t: Make) -> Built:
    """Ensemble: 50 small networks by vmap, 40 examples."""
    x, y = t(normal(40, 3)), t(normal(40))

    def loss(a: Any, b: Any) -> Any:
        def one(a: Any, b: Any) -> Any:
            return ((lib.tanh(x @ a) @ b - y) ** 2).mean()

        return lib.vmap(one)(a, b).sum()

    return loss, [normal(50, 3, 20), normal(50, 20)]


def transformer(lib: Any, t: Make) -> Built:
    """Transformer block: 8 × 64 tokens, width 128, 4 heads."""
    width, heads = 128, 4
    x0 = t(normal(8, 64, width))
    shapes = (width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)

    def standard(x: Any) -> Any:
        centred = x - x.mean(-1)[..., None]
        return centred / ((centred * centred).mean(-1)[..., None] + 1e-5) ** 0.5

    def loss(qkv: Any, out: Any, up: Any, down: Any) -> Any:
        parts = (standard(x0) @ qkv).reshape((8, 64, 3, heads, width // heads))
        q, k, v = (parts[:, :, i].swapaxes(1, 2) for i in range(3))
        scores = (q @ k.swapaxes(2, 3) * (width // heads) ** -0.5).softmax(-1)
        mixed = (scores @ v).swapaxes(1, 2).reshape((8, 64, width))
        x = x0 + mixed @ out
        h = standard(x) @ up
        h = 0.5 * h * (1 + lib.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))
        return ((x + h @ down) ** 2).mean()

    return loss, [normal(*shape) * shape[0] ** -0.5 for shape in shapes]


def convolutional(lib: Any, t: Make) -> Built:
    """Convolutional network: 32 images of 28 × 28, two convolutions and poolings."""
    x, labels = t(normal(32, 1, 28, 28)), t(integers(10, 32))
    nnf = lib.nn.functional

    def loss(a: Any, b: Any, c: Any) -> Any:
        h = nnf.max_pool2d(lib.relu(nnf.conv2d(x, a)), 2)
        h = nnf.max_pool2d(lib.relu(nnf.conv2d(h, b)), 2)
        return nnf.cross_entropy(h.reshape((32, -1)) @ c, labels)

    return loss, [
        normal(8, 1, 3, 3) * 0.3,
        normal(16, 8, 3, 3) * 0.1,
        normal(16 * 25, 10) * 0.05,
    ]


def small_product(lib: Any, t: Make) -> Built:
    """Sum of 100,000 numbers, and a small product."""
    m = t(normal(4, 4))

    def loss(x: Any, v: Any) -> Any:
        return (x.sum() * (m @ v)).sum()

    return loss, [normal(100000), normal(4)]


def attention_of_views(lib: Any, t: Make) -> Built:
    """Products of stacks of transposed matrices: 64 of 20 × 30."""
    x = t(normal(64, 30, 20))

    def loss(a: Any) -> Any:
        scores = x.swapaxes(1, 2) @ a
        return ((scores @ scores.swapaxes(1, 2)) ** 2).mean()

    return loss, [normal(64, 30, 25)]


def bundle(lib: Any, cameras: Any, points: Any, weights: Any, features: Any) -> Any:
    """Return reprojection errors, with the 11 camera parameters of ADBench, as a batch."""
    rotation, centre, focal = cameras[:, :3], cameras[:, 3:6], cameras[:, 6:7]
    angle = lib.sqrt((rotation * rotation).sum(1))[:, None]
    axis, offset = rotation / angle, points - centre
    cosine, sine = lib.cos(angle), lib.sin(angle)
    along = axis * (axis * offset).sum(1)[:, None] * (1 - cosine)
    rotated = offset * cosine + lib.linalg.cross(axis, offset) * sine + along
    plane = rotated[:, :2] / rotated[:, 2:]
    squared = (plane * plane).sum(1)[:, None]
    distorted = plane * (1 + cameras[:, 9:10] * squared + cameras[:, 10:] * squared * squared)
    return weights[:, None] * (distorted * focal + cameras[:, 7:9] - features)


def reprojection(count: int) -> list[Array]:
    """Return cameras, points, weights and features."""
    cameras, points = normal(count, 11) * 0.1, normal(count, 3) + np.array([0.0, 0.0, 5.0])
    cameras[:, 6] += 1.0
    return [cameras, points, np.abs(normal(count)), normal(count, 2)]


PROGRAMS = (
    *(mixture, spherical_mixture, diagonal_mixture, barrier, gaussian_process, logistic),
    *(kalman, hidden_markov, particles, recurrent, messages, words, scattered, binned),
    *(newton, heat, waves, predators, control, spline, deconvolution, lens),
    *(network, ensemble, transformer, convolutional, small_product, attention_of_views),
)
TWICE = (mixture, spherical_mixture, logistic)
"""Programs whose Hessian-vector product is measured, too, by double backward."""


# --- jobs -----------------------------------------------------------------------------------------


def maker(lib: Any, dtype: str) -> Make:
    """Return the function that makes tensors of a dtype, or of the complex one of its precision."""

    def make(value: Any) -> Any:
        array = np.asarray(value)
        kind = {"f": dtype, "c": "complex128" if dtype == "float64" else "complex64"}
        return lib.tensor(array.astype(kind.get(array.dtype.kind, array.dtype)))

    return make


def gradient(build: Callable[[Any, Make], Built], lib: Any, dtype: str) -> Callable[[], Any]:
    """Return a job: the loss and its gradients."""
    t = maker(lib, dtype)
    loss, arrays = build(lib, t)
    inputs = [t(a).requires_grad_() for a in arrays]

    def job() -> Any:
        value = loss(*inputs)
        for x in inputs:
            x.grad = None
        value.backward()
        return [x.grad for x in inputs]

    return job


def curvature(build: Callable[[Any, Make], Built], lib: Any, dtype: str) -> Callable[[], Any]:
    """Return a job: a Hessian-vector product by differentiating the gradient."""
    t, grad = maker(lib, dtype), lib.autograd.grad
    loss, arrays = build(lib, t)
    inputs = [t(a).requires_grad_() for a in arrays]
    vectors = [t(np.cos(np.arange(np.size(a)).reshape(np.shape(a)))) for a in arrays]

    def job() -> Any:
        slopes = grad(loss(*inputs), inputs, create_graph=True)
        return grad(slopes, inputs, vectors)

    return job


def batched_jacobian(lib: Any, dtype: str) -> Callable[[], Any]:
    """Return a job: the Jacobian blocks of bundle adjustment, all observations in two passes."""
    t, grad = maker(lib, dtype), lib.autograd.grad
    *inputs, features = [t(a) for a in reprojection(1000)]
    for x in inputs:
        x.requires_grad_()

    def job() -> Any:
        found = bundle(lib, *inputs, features).sum(0)
        return [g for i in range(2) for g in grad(found[i], inputs, retain_graph=True)]

    return job


def jacobians(lib: Any, dtype: str) -> Callable[[], Any]:
    """Return a job: the same by `vmap` of `jacrev`."""
    t = maker(lib, dtype)
    arrays = [t(a)[:, None] for a in reprojection(1000)]
    func = lib.func

    def one(*row: Any) -> Any:
        return bundle(lib, *row)[0]

    job = func.vmap(func.jacrev(one, (0, 1, 2)))
    return lambda: job(*arrays)


def jobs(dtype: str) -> dict[str, Callable[[Any], Callable[[], Any]]]:
    """Return the jobs by name, as functions of the library."""
    found: dict[str, Callable[[Any], Callable[[], Any]]] = {}
    for build in PROGRAMS:
        name = (build.__doc__ or "").rstrip(".")
        found[name] = partial(gradient, build, dtype=dtype)
        if build in TWICE:
            found[f"· {name.partition(':')[0]}: Hessian times a vector"] = partial(
                curvature, build, dtype=dtype
            )
    found["Bundle adjustment: Jacobian of 1,000 observations"] = partial(
        batched_jacobian, dtype=dtype
    )
    found["· by `vmap` of `jacrev`"] = partial(jacobians, dtype=dtype)
    return found
