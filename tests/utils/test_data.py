"""Data sets, samplers, collation and the data loader, with and without workers."""

from __future__ import annotations

import collections
import inspect
import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.utils import data
from chainrule.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)

WORKERS = [0, 1, 3]


class Squares(Dataset[Any]):
    """Dicts, computed one by one."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        if index == 13:
            raise KeyError("no thirteen")
        return {"x": np.full(2, index, np.float32), "y": index**2, "name": str(index)}


class Counting(IterableDataset[int]):
    """A stream, of which each worker takes a part."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __iter__(self) -> Any:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        yield from range(first, self.length, step)

    def __len__(self) -> int:
        return self.length


class Dying(Squares):
    def __getitem__(self, index: int) -> Any:
        if index == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return index


class Slow(Squares):
    def __getitem__(self, index: int) -> Any:
        time.sleep(30)


class Seeds(Squares):
    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        assert info is not None
        return np.array([info.id, info.seed, cr.rand(1).item() * 1e6, np.random.rand() * 1e6])


def tensors(number: int = 10) -> TensorDataset:
    return TensorDataset(cr.arange(2 * number).reshape(number, 2).float(), cr.arange(number))


def flat(loader: Any) -> list[int]:
    return [int(i) for batch in loader for i in batch[1]]


# --- data sets ------------------------------------------------------------------------------------


def test_data_sets_and_their_combinations() -> None:
    both = ConcatDataset([tensors(3), tensors(4)])
    assert len(both) == 7
    assert [int(both[i][1]) for i in range(7)] == [0, 1, 2, 0, 1, 2, 3]
    assert int(both[-1][1]) == 3
    assert len(tensors(2) + tensors(2) + tensors(1)) == 5
    with pytest.raises(IndexError, match="index 7 is out of range for 7 examples"):
        both[7]
    subset = Subset(Subset(tensors(), [5, 6, 7]), [2, 0])
    assert [int(subset[i][1]) for i in range(2)] == [7, 5]
    pairs = StackDataset(tensors(3), Squares(3))
    assert pairs[2][1]["y"] == 4
    assert pairs.__getitems__([0, 2])[1][1]["y"] == 4
    named = StackDataset(a=Subset(tensors(4), [3, 2]), b=[10, 20])
    assert named[1]["b"] == 20
    assert named.__getitems__([0])[0]["b"] == 10
    stream = Counting(2) + Counting(3)
    assert isinstance(stream, ChainDataset)
    assert list(stream) == [0, 1, 0, 1, 2]
    assert len(stream) == 5


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: TensorDataset(), ValueError, "one or more"),
        (lambda: TensorDataset(cr.ones(2), cr.ones(3)), ValueError, r"lengths \[2, 3\]"),
        (lambda: ConcatDataset([]), ValueError, "empty"),
        (lambda: ConcatDataset([Counting(2)]), ValueError, "say ChainDataset"),
        (lambda: list(ChainDataset([tensors()])), TypeError, "say ConcatDataset"),
        (lambda: StackDataset(), ValueError, "at least one"),
        (lambda: StackDataset(tensors(), a=tensors()), ValueError, "got 1 and 1"),
        (lambda: StackDataset(tensors(2), tensors(3)), ValueError, r"lengths \[2, 3\]"),
        (lambda: random_split(tensors(), [3, 4]), ValueError, r"got \[3, 4\] for 10 examples"),
        (lambda: Dataset()[0], NotImplementedError, "has no __getitem__"),
        (lambda: RandomSampler([1], num_samples=0), ValueError, "positive integer value"),
        (lambda: DataLoader([], shuffle=True), ValueError, "num_samples=0: the data set is empty"),
        (lambda: RandomSampler([1], replacement=1), TypeError, "boolean"),
        (lambda: WeightedRandomSampler([1.0], 0), ValueError, "positive integer value"),
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, "1d sequence"),
        (lambda: BatchSampler([1], 0, False), ValueError, "batch_size should be a positive"),
        (lambda: BatchSampler([1], 2, 3), TypeError, "drop_last should be a boolean"),
    ],
)
def test_errors_of_data_sets_and_samplers(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_random_splits() -> None:
    parts = random_split(tensors(11), [0.5, 0.3, 0.2])
    assert [len(part) for part in parts] == [6, 3, 2]
    assert sorted(i for part in parts for i in part.indices) == list(range(11))
    generator = cr.Generator()
    splits = [
        random_split(tensors(), [7, 3], generator.manual_seed(3))[1].indices for _ in range(2)
    ]
    assert splits[0] == splits[1]


# --- samplers -------------------------------------------------------------------------------------


def test_samplers() -> None:
    assert list(SequentialSampler(range(3))) == [0, 1, 2]
    assert sorted(RandomSampler(range(50))) == list(range(50))
    assert list(RandomSampler(range(50))) != list(range(50))
    drawn = list(RandomSampler(range(5), num_samples=12))
    assert len(drawn) == 12
    assert sorted(drawn[:5]) == sorted(drawn[5:10]) == list(range(5))
    assert set(RandomSampler(range(3), replacement=True, num_samples=100)) == {0, 1, 2}
    assert len([*RandomSampler(range(3), replacement=True, num_samples=5000)]) == 5000
    endless = iter(RandomSampler(range(3), replacement=True, num_samples=10**10))
    assert {next(endless) for _ in range(100)} == {0, 1, 2}
    assert sorted(SubsetRandomSampler([4, 7, 9])) == [4, 7, 9]
    weighted = WeightedRandomSampler([0.0, 1.0, 3.0], 1000)
    counts = collections.Counter(weighted)
    assert counts[0] == 0
    assert 650 < counts[2] < 850
    assert sorted(WeightedRandomSampler([1.0, 1.0], 2, replacement=False)) == [0, 1]
    for drop_last in (False, True):
        batches = BatchSampler(SequentialSampler(range(7)), 3, drop_last)
        assert [len(batch) for batch in batches] == [3, 3, 1][: len(batches)]
        assert len(batches) == (2 if drop_last else 3)


def test_order_comes_from_the_generator() -> None:
    generator = cr.Generator().manual_seed(5)
    loader = DataLoader(tensors(), batch_size=3, shuffle=True, generator=generator)
    first, second = flat(loader), flat(loader)
    assert first != second
    assert sorted(first) == sorted(second) == list(range(10))
    generator.manual_seed(5)
    assert flat(loader) == first
    cr.manual_seed(1)
    default = flat(DataLoader(tensors(), shuffle=True))
    cr.manual_seed(1)
    assert flat(DataLoader(tensors(), shuffle=True)) == default


# --- collation ------------------------------------------------------------------------------------

Point = collections.namedtuple("Point", "x y")

EXAMPLES: dict[str, Any] = {
    "numbers": [1, 2],
    "bools": [True, False],
    "floats": [1.0, 2.5],
    "strings": ["a", "b"],
    "arrays": [np.ones(2, np.float32), np.zeros(2, np.float32)],
    "scalars": [np.float64(1), np.float64(2)],
    "dicts": [{"a": 1, "b": [1.0, "x"]}, {"a": 2, "b": [2.0, "y"]}],
    "tuples": [(1, np.arange(3)), (2, np.arange(3))],
    "namedtuples": [Point(1, 2.0), Point(3, 4.0)],
    "ordered": [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
}


def assert_alike(ours: Any, theirs: Any) -> None:
    if isinstance(ours, cr.Tensor):
        assert type(theirs).__name__ == "Tensor"
        assert str(ours.dtype) == str(theirs.dtype).removeprefix("torch.")
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
        return
    assert type(ours) is type(theirs)
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(ours, list | tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_alike(one, other)
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("function", ["default_collate", "default_convert"])
def test_collation_is_that_of_pytorch(name: str, function: str) -> None:
    torch_data = pytest.importorskip("torch.utils.data")
    assert_alike(
        getattr(data, function)(EXAMPLES[name]), getattr(torch_data, function)(EXAMPLES[name])
    )


def test_collation() -> None:
    batch = default_collate([(cr.tensor([1.0, 2.0]), 3), (cr.tensor([4.0, 5.0]), 6)])
    assert batch[0].tolist() == [[1, 2], [4, 5]]
    assert batch[1].tolist() == [3, 6]
    assert default_convert([np.ones(2), "a", (1, np.zeros(1))])[0].tolist() == [1, 1]
    with pytest.raises(TypeError, match=r"found <class 'object'>\. Give a collate_fn"):
        default_collate([object(), object()])
    with pytest.raises(TypeError, match="dtype <U1"):
        default_collate([np.array(["a"])])
    with pytest.raises(RuntimeError, match=r"equal size, but their lengths are \[1, 2\]"):
        default_collate([[1], [1, 2]])


# --- the loader -----------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", WORKERS)
def test_batches_in_order(workers: int) -> None:
    loader = DataLoader(tensors(), batch_size=4, num_workers=workers)
    for _ in range(2):
        batches = list(loader)
        assert [batch[0].shape for batch in batches] == [(4, 2), (4, 2), (2, 2)]
        assert flat(batches) == list(range(10))
    assert len(loader) == 3
    dropped = DataLoader(tensors(), batch_size=4, num_workers=workers, drop_last=True)
    assert (len(dropped), len(list(dropped))) == (2, 2)


@pytest.mark.parametrize("workers", WORKERS)
def test_dicts_collate_fn_samplers_and_single_examples(workers: int) -> None:
    batch = next(iter(DataLoader(Squares(5), 3, num_workers=workers)))
    assert batch["x"].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert batch["y"].tolist() == [0, 1, 4]
    assert batch["name"] == ["0", "1", "2"]
    own = DataLoader(
        Squares(5), 2, sampler=[4, 0, 3], num_workers=workers, collate_fn=lambda b: len(b)
    )
    assert list(own) == [2, 1]
    single = list(DataLoader(Squares(3), batch_size=None, num_workers=workers))
    assert single[2]["x"].tolist() == [2, 2]
    batches = DataLoader(tensors(), batch_sampler=[[1, 2, 3], [9]], num_workers=workers)
    assert flat(batches) == [1, 2, 3, 9]
    assert len(batches) == 2


def test_one_gather_equals_collation_of_examples() -> None:
    class Plain(Dataset[Any]):
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __len__(self) -> int:
            return len(self.inner)

        def __getitem__(self, index: int) -> Any:
            return self.inner[index]

    class Negated(TensorDataset):
        def __getitem__(self, index: Any) -> Any:
            return tuple(-tensor for tensor in super().__getitem__(index))

    for whole in (tensors(), Subset(tensors(), [3, 1, 2, 2]), Negated(*tensors().tensors)):
        for fast, slow in zip(DataLoader(whole, 3), DataLoader(Plain(whole), 3), strict=True):
            assert type(fast) is type(slow)
            for a, b in zip(fast, slow, strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(a.numpy(), b.numpy())
    x, _ = next(iter(DataLoader(tensors(), 2)))
    x.zero_()
    assert tensors()[1][0].tolist() == [2, 3]


def test_gradients_flow_through_batches() -> None:
    w = cr.ones(4, requires_grad=True)
    for (batch,) in DataLoader(TensorDataset(w), 2):
        (3 * batch).sum().backward()
    assert w.grad.tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("size", [3, None])
def test_streams(workers: int, size: int | None) -> None:
    loader = DataLoader(Counting(10), size, num_workers=workers)
    for _ in range(2):
        batches = list(loader)
        numbers = [int(i) for batch in batches for i in (batch if size else [batch])]
        assert sorted(numbers) == list(range(10))
    assert len(DataLoader(Counting(10), 3)) == 4
    assert len(DataLoader(Counting(10), 3, drop_last=True)) == 3
    assert [len(b) for b in DataLoader(Counting(10), 4, drop_last=True)] == [4, 4]


@pytest.mark.parametrize("workers", WORKERS)
def test_an_error_in_a_data_set_keeps_its_type(workers: int) -> None:
    batches = iter(DataLoader(Squares(20), 4, num_workers=workers))
    before = [next(batches)["y"][0] for _ in range(3)]
    with pytest.raises(KeyError, match="no thirteen") as caught:
        next(batches)
    after = [batch["y"][0] for batch in batches]  # as in PyTorch, one may go on
    assert (before, after) == ([0, 16, 64], [256])
    if workers:
        assert "DataLoader worker process" in str(caught.value)
        assert "__getitem__" in str(caught.value)


def test_seeds_and_init_of_workers() -> None:
    def init(number: int) -> None:
        os.environ["WORKER"] = str(number)

    def seen(loader: Any) -> list[list[float]]:
        return [batch[0].tolist() for batch in loader]

    cr.manual_seed(4)
    first = seen(DataLoader(Seeds(4), num_workers=2, worker_init_fn=init))
    cr.manual_seed(4)
    assert seen(DataLoader(Seeds(4), num_workers=2)) == first
    assert len({row[2] for row in first}) == 4
    assert first[1][1] == first[0][1] + 1
    assert "WORKER" not in os.environ
    with pytest.raises(ZeroDivisionError, match="worker process"):
        list(DataLoader(Seeds(4), num_workers=1, worker_init_fn=lambda n: 1 / 0))


def test_persistent_workers_stay() -> None:
    class Pids(Squares):
        def __getitem__(self, index: int) -> Any:
            return os.getpid()

    def pids(loader: Any) -> set[int]:
        return {int(pid) for batch in loader for pid in batch}

    loader = DataLoader(Pids(8), 2, num_workers=2, persistent_workers=True)
    next(iter(loader))  # abandoned: its answers are dropped
    first = pids(loader)
    assert first == pids(loader)
    assert os.getpid() not in first
    fresh = DataLoader(Pids(8), 2, num_workers=2)
    assert not pids(fresh) & pids(fresh)
    processes = loader._pool.processes  # type: ignore[union-attr]
    loader._pool.stop()  # type: ignore[union-attr]
    assert not any(process.is_alive() for process in processes)


def test_leaving_the_loop_ends_the_workers() -> None:
    before = set(_children())
    for _ in DataLoader(tensors(100), 2, num_workers=2):
        break
    del _
    assert set(_children()) <= before


def _children() -> list[int]:
    import multiprocessing

    return [process.pid or 0 for process in multiprocessing.active_children()]


def test_a_dead_worker_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"exited unexpectedly.*-9"):
        list(DataLoader(Dying(8), 2, num_workers=2))


def test_a_slow_worker_is_an_error_with_a_timeout() -> None:
    with pytest.raises(RuntimeError, match=r"timed out after 0\.2 seconds"):
        list(DataLoader(Slow(2), num_workers=1, timeout=0.2))


def test_large_batches_do_not_block() -> None:
    class Large(Squares):
        def __getitem__(self, index: int) -> Any:
            return np.full(100_000, index, np.float32)

    sampler = [[i % 7] * 5 for i in range(30)]
    loader = DataLoader(Large(7), batch_sampler=sampler, num_workers=2, prefetch_factor=4)
    assert [int(batch[0, 0]) for batch in loader] == [i % 7 for i in range(30)]
    many = DataLoader(tensors(9), batch_sampler=[[1] * 200_000] * 6, num_workers=2)
    assert [len(batch[0]) for batch in many] == [200_000] * 6


def test_batches_as_they_are_ready() -> None:
    loader = DataLoader(tensors(20), 3, num_workers=2, in_order=False)
    assert sorted(flat(loader)) == list(range(20))


def test_spawned_workers() -> None:
    loader = DataLoader(Squares(5), 2, num_workers=1, multiprocessing_context="spawn")
    assert [batch["y"].tolist() for batch in loader] == [[0, 1], [4, 9], [16]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals")
def test_workers_end_with_a_killed_parent() -> None:
    script = """
import os, signal, chainrule as cr
from chainrule.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(cr.arange(100)), 2, num_workers=2, persistent_workers=True)
next(iter(loader))
print(*[process.pid for process in loader._pool.processes], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    pids = [int(pid) for pid in found.stdout.split()]
    assert len(pids) == 2
    deadline = time.monotonic() + 20
    while any(_is_running(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"shuffle": True, "sampler": [1]}, "mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
        ({"batch_sampler": [[1]], "drop_last": True}, "batch_sampler option is mutually excl"),
        ({"batch_size": None, "drop_last": True}, "disables auto-batching"),
        ({"batch_size": 0}, "batch_size should be a positive integer value, but got 0"),
        ({"num_workers": -1}, "non-negative integer, but got -1"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor needs workers"),
        ({"prefetch_factor": 0, "num_workers": 1}, "at least 1"),
        ({"multiprocessing_context": "fork"}, "multi-process loading .* but got num_workers=0"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
    ],
)
def test_arguments_that_do_not_fit(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        DataLoader(tensors(), **options)


@pytest.mark.parametrize("name", ["batch_size", "drop_last", "dataset", "sampler"])
def test_what_was_read_when_the_loader_was_made_cannot_be_set(name: str) -> None:
    loader = DataLoader(tensors())
    with pytest.raises(ValueError, match=f"{name} attribute should not be set after"):
        setattr(loader, name, 3)
    loader.collate_fn = lambda examples: "collated"
    assert next(iter(loader)) == "collated"


def test_an_index_out_of_range_is_not_blamed_on_a_function_of_the_loader() -> None:
    loader = DataLoader(tensors(), sampler=[10**9])
    with pytest.raises(IndexError, match=r"^index 1000000000 is out of bounds"):
        list(loader)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_data_set_cannot_end_the_epoch_by_accident(workers: int) -> None:
    class Ended(Squares):
        def __getitem__(self, index: int) -> Any:
            return next(iter(()))

    with pytest.raises(RuntimeError, match="Ended raised StopIteration"):
        list(DataLoader(Ended(3), num_workers=workers))


def test_a_stream_has_its_own_order() -> None:
    with pytest.raises(ValueError, match="stream has its own order"):
        DataLoader(Counting(3), shuffle=True)


@pytest.mark.parametrize("name", data.__all__)
def test_arguments_are_those_of_pytorch(name: str) -> None:
    torch_data = pytest.importorskip("torch.utils.data")
    ours, theirs = (inspect.signature(getattr(d, name)) for d in (data, torch_data))
    if name == "DataLoader":  # how workers start apart, all defaults are the same
        assert list(ours.parameters) == list(theirs.parameters)
    assert [p.kind for p in ours.parameters.values()] == [
        p.kind for p in theirs.parameters.values() if p.name != "collate_fn_map"
    ] or name in ("default_collate", "Sampler", "Dataset", "IterableDataset", "StackDataset")


def test_the_names_of_modules_in_scripts() -> None:
    import chainrule.utils.data as whole
    from chainrule.utils.data.dataloader import DataLoader as Again
    from chainrule.utils.data.dataloader import default_collate as collate
    from chainrule.utils.data.dataset import Dataset as Set
    from chainrule.utils.data.sampler import Sampler

    assert cr.utils.data is whole
    assert (Again, collate, Set) == (whole.DataLoader, whole.default_collate, whole.Dataset)
    assert issubclass(RandomSampler, Sampler)
    with pytest.raises(NotImplementedError, match="has no __iter__"):
        iter(Sampler())


# --- progress -------------------------------------------------------------------------------------


def test_progress_without_tqdm(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    assert list(cr.utils.progress([1, 2, 3], "steps")) == [1, 2, 3]
    assert "steps: 3/3 (100 %) in 0.0 s" in capsys.readouterr().err
    assert list(cr.utils.progress(iter("ab"))) == ["a", "b"]
    assert "\r2 in 0.0 s\n" in capsys.readouterr().err


def test_progress_with_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    import types

    seen = {}

    def tqdm(iterable: Any, **options: Any) -> Any:
        seen.update(options)
        return iterable

    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=tqdm))
    assert list(cr.utils.progress([1, 2], "steps", leave=False)) == [1, 2]
    assert seen == {"desc": "steps", "total": None, "leave": False}
