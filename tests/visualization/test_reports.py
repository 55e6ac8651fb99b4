"""Reports: what a graph keeps in memory, and the layers of a module."""

from __future__ import annotations

import pytest

import chainrule as cr


def block(x, w):
    return (x @ w).tanh().exp()


def network(x, w, count=3):
    for _ in range(count):
        x = block(x, w) * 2.0
    return (x**2).sum()


NUMBER = 4
"""Bytes of a number that multiplies."""


def kept_by(function):
    """Return the bytes that the graph of a call keeps, by a measurement with hooks."""
    sizes = {}
    kept = []

    def pack(tensor):
        kept.append(tensor)
        sizes[id(tensor._array)] = tensor._array.nbytes
        return tensor

    with cr.saved_tensors_hooks(pack, lambda tensor: tensor):
        function()
    return sum(sizes.values())


# --- saved_report ---------------------------------------------------------------------------------


def test_bytes_are_those_of_distinct_saved_arrays():
    x, w = cr.ones(10, 4), cr.ones(4, 4, requires_grad=True)
    report = cr.saved_report(network(x, w))
    # The hooks see w, too, which lives anyway, but not the number 2.0.
    assert report.nbytes + report.shared == kept_by(lambda: network(x, w)) + NUMBER
    assert report.shared == w._array.nbytes
    operations = {row.operation: row for row in report.rows}
    assert operations["tanh"].nbytes == 3 * 160
    assert operations["tanh"].operations == 3
    assert operations["tanh"].location.line == block.__code__.co_firstlineno + 1
    assert report.nbytes == sum(row.nbytes for row in report.rows)
    assert "29.9%  tanh × 3" in str(report)


def test_memory_that_several_operations_keep_counts_once():
    x = cr.ones(100, requires_grad=True)
    y = x.exp()
    report = cr.saved_report((y * y + y.sin()).sum())
    assert report.nbytes == 400
    assert [row.operation for row in report.rows] == ["exp"]


def test_views_keep_the_memory_of_their_base():
    x = cr.ones(100, requires_grad=True)
    y = (x * 1.0).exp()
    assert cr.saved_report(y[:1].sin().sum()).nbytes == 400 + 4


@pytest.mark.parametrize("count", [1, 3])
def test_the_saving_of_a_checkpoint_is_what_it_saves(count):
    x, w = cr.ones(10, 4), cr.ones(4, 4, requires_grad=True)
    plain = cr.saved_report(network(x, w, count))
    (row,) = [row for row in plain.checkpoints if row.name.startswith("block()")]
    checkpointed = cr.checkpoint(block)

    def again():
        y = x
        for _ in range(count):
            y = checkpointed(y, w) * 2.0
        return (y**2).sum()

    assert plain.nbytes - row.nbytes == kept_by(again) - w._array.nbytes + NUMBER
    assert row.operations == 3 * count
    assert f"cr.checkpoint around {row.name} would keep" in str(plain)


def smooth(x):
    return x.exp().tanh().sin()


def test_operands_that_nothing_else_keeps_are_counted():
    x = cr.ones(100, requires_grad=True)
    plain = cr.saved_report(smooth(x + 1).sum())
    (row,) = [row for row in plain.checkpoints if row.name == "smooth()"]
    kept = kept_by(lambda: cr.checkpoint(smooth)(x + 1).sum())  # the sum, which add does not keep
    assert (plain.nbytes, kept) == (800, 400)
    assert plain.nbytes - row.nbytes == kept


def test_modules_are_candidates_for_checkpoints():
    net = cr.nn.Sequential(
        *[cr.nn.Sequential(cr.nn.Linear(8, 8), cr.nn.Tanh(), cr.nn.Linear(8, 8)) for _ in range(3)]
    )
    report = cr.saved_report(net(cr.ones(5, 8)).sum(), names={"net": net})
    assert any("each of 3 calls" in row.name for row in report.checkpoints)


def test_rows_name_the_module_of_an_operation():
    net = cr.nn.Sequential(cr.nn.Linear(8, 4), cr.nn.Tanh(), cr.nn.Linear(4, 1))
    report = cr.saved_report(net(cr.ones(5, 8)).square().sum(), names={"net": net})
    found = {(row.operation, row.module) for row in report.rows}
    wanted = {("matmul", "net.0 · Linear"), ("tanh", "net · Sequential"), ("square", "")}
    assert wanted <= found
    assert "[net.0 · Linear]" in str(report)


def test_a_freed_graph_says_so():
    x = cr.ones(100, requires_grad=True)
    loss = x.exp().sum()
    loss.backward()
    report = cr.saved_report(loss)
    assert report.is_freed
    assert report.nbytes == 0
    assert "retain_graph=True" in str(report)


def test_values_that_hooks_keep_are_not_counted():
    x = cr.ones(100, requires_grad=True)
    report = cr.saved_report(cr.checkpoint(cr.exp)(x).sum())
    assert report.is_packed
    assert report.nbytes == 0
    assert "not counted" in str(report)
    assert not cr.saved_report(x.exp().sum()).is_packed


def test_long_reports_are_cut():
    x = cr.ones(2, requires_grad=True)
    scope = {"x": x}
    lines = [f"x = x.sin() * {i}.5" for i in range(30)]
    exec("\n".join(lines), scope)
    report = cr.saved_report(scope["x"])
    assert len(report.rows) == 59  # the first keeps x, which lives anyway
    assert "39 more lines" in str(report)


def test_saved_report_needs_a_tensor():
    with pytest.raises(cr.ArgumentError, match=r"saved_report: expected a tensor.*got str"):
        cr.saved_report("loss")


# --- summary --------------------------------------------------------------------------------------


def test_rows_have_shapes_parameters_and_flops():
    net = cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.ReLU(), cr.nn.Linear(4, 1))
    found = cr.summary(net, cr.ones(8, 3))
    assert [row.outputs for row in found.rows] == ["8 × 1", "8 × 4", "8 × 4", "8 × 1"]
    assert [row.parameters for row in found.rows] == [0, 16, 0, 5]
    assert found.rows[1].flops == 2 * 8 * 3 * 4 + 8 * 4
    assert found.rows[2].flops == 8 * 4
    assert found.flops == sum(row.flops for row in found.rows[1:])
    assert (found.parameters, found.trainable, found.nbytes) == (21, 21, 84)
    assert found.saved == 8 * 3 * 4 + 8 * 4 * 4  # the input, and the result of relu


def test_convolutions_count_each_multiplication():
    net = cr.nn.Conv2d(3, 8, 3, bias=False)
    assert cr.summary(net, cr.ones(2, 3, 10, 10)).flops == 2 * (2 * 8 * 8 * 8) * 3 * 9
    grouped = cr.nn.Conv2d(4, 8, 3, bias=False, groups=2)
    assert cr.summary(grouped, cr.ones(1, 4, 5, 5)).flops == 2 * (8 * 3 * 3) * 2 * 9


def test_shared_parameters_and_repeated_calls():
    class Twice(cr.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = cr.nn.Linear(3, 3)
            self.unused = cr.nn.Linear(2, 2)
            self.tied = cr.nn.Linear(3, 3, bias=False)
            self.tied.weight = self.inner.weight

        def forward(self, x):
            return self.inner(self.inner(x))

    found = cr.summary(Twice(), cr.ones(1, 3))
    by_path = {row.path: row for row in found.rows}
    assert by_path["inner"].calls == 2
    assert by_path["inner"].flops == 2 * (2 * 9 + 3)
    assert by_path["tied"].parameters == 0
    assert "not called" in str(found)
    assert found.parameters == 12 + 6


def test_the_module_is_as_before():
    net = cr.nn.Sequential(cr.nn.BatchNorm1d(3), cr.nn.Dropout(0.5))
    net[1].eval()
    before = net[0].running_mean.clone()
    cr.summary(net, cr.ones(4, 3))
    assert (net.training, net[0].training, net[1].training) == (True, True, False)
    assert net[0].running_mean.tolist() == before.tolist()
    assert not any(each._hooks is not None and each._hooks.any for each in net.modules())
    with pytest.raises(RuntimeError):
        cr.summary(net, cr.ones(4, 5))
    assert net.training
    assert not any(each._hooks is not None and each._hooks.any for each in net.modules())


def test_frozen_modules_have_no_flops_but_shapes():
    net = cr.nn.Linear(3, 2).requires_grad_(False)
    found = cr.summary(net, cr.ones(5, 3))
    assert (found.flops, found.trainable, found.rows[0].outputs) == (None, 0, "5 × 2")
    assert "8 of them frozen" in str(found)


def test_summary_needs_a_module():
    with pytest.raises(cr.ArgumentError, match=r"expected a Module, got function.*cr\.summary"):
        cr.summary(block, cr.ones(1))
