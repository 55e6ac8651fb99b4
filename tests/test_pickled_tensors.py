"""Pickled tensors: memory that is sent without copies, what belongs together, other processes."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from helpers.processes import run_program

W = cr.randn(40, 30)


def tensors_of(kept: Any) -> list[cr.Tensor]:
    if isinstance(kept, cr.Tensor):
        return [kept]
    if isinstance(kept, nn.Module):
        return [*kept.parameters(), *kept.buffers()]
    return [W]


def with_gradient() -> cr.Tensor:
    x = cr.randn(40, 30, requires_grad=True)
    (x**2).sum().backward()
    return x


KEPT = {
    "tensor": lambda: cr.randn(40, 30),
    "leaf": with_gradient,
    "rows of another": lambda: W[10:20],
    "transposed": lambda: W.T,
    "empty": lambda: cr.zeros(0, 3),
    "complex": lambda: cr.randn(40, 30, dtype=cr.complex64),
    "parameter": lambda: nn.Parameter(cr.randn(40, 30)),
    "array": lambda: cr.numpy.ones((40, 30)),
    "module": lambda: nn.Sequential(nn.Linear(30, 40), nn.BatchNorm1d(40)),
}
CLOSURES = {
    "grad": lambda f: cr.grad(f),
    "compile": lambda f: cr.compile(f),
    "compile(value_and_grad)": lambda f: cr.compile(cr.value_and_grad(f)),
    "autograd_function": lambda f: cr.autograd_function(lambda ctx, x: f(x), lambda ctx, g: g),
}


def assert_sent_without_copies(kept: Any, frames: list[Any]) -> None:
    memory = [np.frombuffer(frame, "u1") for frame in frames if memoryview(frame).nbytes]
    for tensor in tensors_of(kept):
        array = tensor.detach().numpy()
        assert not array.size or any(np.shares_memory(array, each) for each in memory)


@pytest.mark.parametrize("kind", KEPT)
def test_memory_goes_out_of_band(kind: str) -> None:
    kept, buffers = KEPT[kind](), []
    written = pickle.dumps(kept, protocol=5, buffer_callback=buffers.append)
    assert len(written) < 2000
    assert_sent_without_copies(kept, [buffer.raw() for buffer in buffers])
    found = pickle.loads(written, buffers=buffers)
    for one, other in zip(tensors_of(found), tensors_of(kept), strict=True):
        assert type(one) is type(other)
        assert one.requires_grad == other.requires_grad
        assert isinstance(one, nn.Parameter) == isinstance(other, nn.Parameter)
        np.testing.assert_array_equal(one.detach(), other.detach())
        assert (one.grad is None) == (other.grad is None)


def test_memory_with_gaps_is_copied_once() -> None:
    for kept in (W[:, ::2], W[0].expand(40, 30), cr.randn(3, 4, 5).permute(1, 0, 2)):
        buffers: list[Any] = []
        written = pickle.dumps(kept, protocol=5, buffer_callback=buffers.append)
        assert [buffer.raw().nbytes for buffer in buffers] == [kept.nbytes]
        np.testing.assert_array_equal(pickle.loads(written, buffers=buffers), kept)
        assert pickle.loads(pickle.dumps(kept, protocol=4)).tolist() == kept.tolist()


@pytest.mark.parametrize("kind", KEPT)
def test_dask_moves_no_bytes(kind: str) -> None:
    protocol = pytest.importorskip("distributed.protocol")
    kept = KEPT[kind]()
    header, frames = protocol.serialize(kept, on_error="raise")
    assert_sent_without_copies(kept, frames)
    found = protocol.deserialize(header, frames)
    for one, other in zip(tensors_of(found), tensors_of(kept), strict=True):
        assert not other.numel() or np.shares_memory(one.detach(), other.detach())


@pytest.mark.parametrize("kind", CLOSURES)
def test_dask_moves_no_bytes_of_closures(kind: str) -> None:
    protocol = pytest.importorskip("distributed.protocol")
    w = W

    def inner(x: Any) -> Any:
        return (w * x).sum()

    for function in (CLOSURES[kind](inner), CLOSURES[kind](lambda x: (w * x).sum())):
        header, frames = protocol.serialize(function, on_error="raise")
        assert_sent_without_copies(function, frames)
        point = cr.ones(40, 30)
        for one, other in zip(
            cr.tree.leaves(protocol.deserialize(header, frames)(point)),
            cr.tree.leaves(function(point)),
            strict=True,
        ):
            np.testing.assert_array_equal(one, other)


def test_dask_weighs_tensors_by_their_memory() -> None:
    sizeof = pytest.importorskip("dask.sizeof").sizeof
    assert sizeof(W) >= sys.getsizeof(W) > W.nbytes == 4800
    assert sizeof({"w": [W, W]}) > 2 * W.nbytes


def test_tensors_with_a_history_are_refused_with_the_mend() -> None:
    result = with_gradient() * 2
    with pytest.raises(cr.AutogradError, match=r"<MulBackward0>, in pickle.dumps.*use detach\(\)"):
        pickle.dumps(result)
    with pytest.raises(cr.AutogradError, match=r"use detach\(\) first"):
        pickle.dumps({"loss": [result]}, protocol=5)
    assert pickle.loads(pickle.dumps(result.detach())).tolist() == result.tolist()


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "LBFGS"])
def test_a_training_run_goes_on_as_a_copy(optimizer: str) -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    draw = cr.Generator().manual_seed(3)
    opt = getattr(cr.optim, optimizer)(net.parameters(), lr=0.1)
    run = net, opt, cr.optim.lr_scheduler.ExponentialLR(opt, 0.5), draw

    def train(net: Any, opt: Any, scheduler: Any, draw: Any) -> list[Any]:
        x = cr.randn(8, 3, generator=draw)

        def closure() -> Any:
            opt.zero_grad()
            loss = (net(x) ** 2).mean()
            loss.backward()
            return loss

        for _ in range(2):
            cr.manual_seed(0)
            opt.step(closure)
            scheduler.step()
        return [p.tolist() for p in net.state_dict().values()]

    train(*run)
    copied = pickle.loads(pickle.dumps(run))
    assert copied[2].optimizer is copied[1]
    assert train(*copied) == train(*run)


PROGRAM = """
import importlib.util, multiprocessing
from concurrent.futures import ProcessPoolExecutor
import numpy as np
import chainrule as cr

w = cr.arange(6.0)

def loss(x):
    return ((w * x).tanh() * x).sum()

@cr.compile
def decorated(x):
    return loss(x)

@cr.autograd_function
def tripled(ctx, x):
    return x * 3

@tripled.backward
def _(ctx, g):
    return g * 3

class Net(cr.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = cr.nn.Parameter(cr.ones(6))

    def forward(self, x):
        return loss(self.w * x).detach()

FUNCTIONS = [
    loss, cr.grad(loss), cr.compile(loss), cr.compile(cr.grad(loss)), decorated, tripled, Net(),
]
LAMBDAS = [
    lambda x: cr.grad(lambda y: (w * y**2).sum())(x),
    cr.compile(cr.value_and_grad(lambda x: (w * x**2).sum())),
    cr.autograd_function(lambda ctx, x: w * x, lambda ctx, g: w * g),
]

def check(run, functions):
    x = cr.linspace(0, 1, 6)
    for function in functions:
        for one, other in zip(cr.tree.leaves(run(function, x)), cr.tree.leaves(function(x))):
            np.testing.assert_allclose(one, other, rtol=1e-6)

if __name__ == "__main__":
    for method in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context(method)
        with context.Pool(1) as pool:
            check(lambda f, x: pool.apply(f, (x,)), FUNCTIONS)
        with ProcessPoolExecutor(1, mp_context=context) as executor:
            check(lambda f, x: executor.submit(f, x).result(), FUNCTIONS)
    if importlib.util.find_spec("joblib"):
        import joblib

        with joblib.Parallel(n_jobs=2) as parallel:  # two: with one, it computes here
            check(lambda f, x: parallel([joblib.delayed(f)(x)])[0], FUNCTIONS + LAMBDAS)
    print("all of them")
"""


def test_other_processes_compute_the_same(tmp_path: Path) -> None:
    assert run_program(PROGRAM, tmp_path).split() == ["all", "of", "them"]
