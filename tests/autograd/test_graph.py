"""cr.autograd.graph, inference_mode and Variable, compared with PyTorch."""

from __future__ import annotations

import gc
import weakref

import pytest

import chainrule as cr
from helpers.tensors import leaf
from helpers.torch_comparison import same_as_torch


def graph(lib):
    return lib.module.autograd.graph


# --- hooks on several tensors ---------------------------------------------------------------------

PASSES = {
    "all": lambda lib, x, y, z, out: lib.backward(out),
    "one unused": lambda lib, x, y, z, out: lib.backward((x * y).sum()),
    "leaf only": lambda lib, x, y, z, out: lib.backward((x * 2).sum()),
    "grad of the middle": lambda lib, x, y, z, out: lib.grad(out, z),
    "inputs": lambda lib, x, y, z, out: lib.backward(out, inputs=[y]),
    "twice": lambda lib, x, y, z, out: [lib.backward(out, retain_graph=True), lib.backward(out)],
    "several roots": lambda lib, x, y, z, out: lib.backward([out, z.sum()]),
    "unrelated": lambda lib, x, y, z, out: lib.backward((lib.leaf([1.0]) * 2).sum()),
}
passes = pytest.mark.parametrize("walk", PASSES.values(), ids=PASSES.keys())


@pytest.mark.parametrize("mode", ["all", "any"])
@passes
def test_a_multi_grad_hook_is_called_once_in_each_pass(walk, mode):
    def program(lib):
        x, y = lib.leaf([1.0, 2.0]), lib.leaf([3.0, 4.0])
        z = x * y
        out = (z * x).sum() * 2
        calls = []

        def hook(grads):
            calls.append(list(grads) if mode == "all" else ["called"])

        handle = graph(lib).register_multi_grad_hook([x, y, z], hook, mode=mode)
        walk(lib, x, y, z, out)
        handle.remove()
        handle.remove()
        lib.backward((x * y).sum())
        return calls

    same_as_torch(program)


def test_a_multi_grad_hook_on_an_input_of_grad_is_called_unlike_in_pytorch():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    calls = []
    cr.autograd.graph.register_multi_grad_hook([x, y], calls.append)
    cr.autograd_grad((x * y).sum(), x)
    ((first, second),) = calls
    assert first.tolist() == [3.0, 4.0]
    assert second is None


def test_any_gets_the_first_gradient():
    def program(lib):
        x = lib.leaf([1.0, 2.0])
        z = x * 3
        seen = []
        graph(lib).register_multi_grad_hook([x, z], seen.append, mode="any")
        lib.backward((z * z).sum())
        return seen

    same_as_torch(program)


@pytest.mark.parametrize("used", [0, 1])
def test_one_used_output_of_a_node_with_several(used):
    def program(lib):
        outs = lib.leaf([1.0, 2.0]).unbind(0)
        calls = []
        graph(lib).register_multi_grad_hook(outs, lambda grads: calls.append(list(grads)))
        lib.backward(outs[used] * 3)
        return calls

    same_as_torch(program)


def test_the_same_tensor_twice_and_a_with_block():
    def program(lib):
        x = lib.leaf([1.0, 2.0])
        calls = []
        with graph(lib).register_multi_grad_hook([x, x], lambda grads: calls.append(list(grads))):
            lib.backward((x * 3).sum())
        lib.backward((x * 3).sum())
        return calls

    same_as_torch(program)


def test_in_a_recorded_pass_hooks_get_recorded_gradients():
    x = leaf([1.0, 2.0])
    seen = []
    cr.autograd.graph.register_multi_grad_hook([x], seen.extend)
    cr.autograd_grad((x**3).sum(), x, create_graph=True)
    (second,) = cr.autograd_grad(seen[0].sum(), x)
    assert second.tolist() == [6.0, 12.0]


def test_a_pass_that_failed_is_forgotten():
    x, y = leaf(1.0), leaf(2.0)
    calls = []
    cr.autograd.graph.register_multi_grad_hook([x, y], calls.append)

    def fail(grad):
        raise RuntimeError("no")

    z = y * 1
    handle = z.register_hook(fail)
    w = x * 1
    out = z + w  # w's branch, recorded later, runs before z's
    with pytest.raises(RuntimeError, match="no"):
        out.backward(retain_graph=True)
    handle.remove()
    assert not calls
    out.backward()
    assert [g.item() for g in calls[0]] == [1.0, 1.0]


def test_no_pass_is_kept():
    x = leaf([1.0])
    handle = cr.autograd.graph.register_multi_grad_hook([x], lambda grads: None)
    group = next(iter(x._node.hooks.tensor[0].values())).group
    (x * 2).sum().backward()
    gc.collect()
    assert not group.passes
    handle.remove()


def test_multi_grad_hook_errors():
    register = cr.autograd.graph.register_multi_grad_hook
    with pytest.raises(ValueError, match=r"Expects mode to be one of \('all', 'any'\)"):
        register([leaf(1.0)], print, mode="some")
    with pytest.raises(cr.AutogradError, match="expected all tensors of register_multi_grad_hook"):
        register([leaf(1.0), cr.ones(1)], print)


# --- edges ----------------------------------------------------------------------------------------


def test_an_edge_stands_for_its_tensor():
    def program(lib):
        x = lib.leaf([1.0, 2.0])
        y = x * x
        parts = (y * 2).unbind()
        edges = [graph(lib).get_gradient_edge(t) for t in (x, y, parts[1])]
        grads = lib.grad(parts[1] * 3, edges)
        return [list(grads), [edge.output_nr for edge in edges], edges[1].node.name()]

    same_as_torch(program)


def test_an_edge_keeps_no_tensor():
    x = leaf([1.0, 2.0])
    y = x * 2
    array = weakref.ref(y.detach().numpy())
    edge = cr.autograd.graph.get_gradient_edge(y)
    out = (y + 1).sum()
    del y
    assert array() is None
    assert cr.autograd_grad(out, {"y": edge})["y"].tolist() == [1.0, 1.0]


def test_the_gradient_of_an_edge_can_be_differentiated_and_owns_its_memory():
    x = leaf([1.0, 2.0])
    y = x * 1
    edge = cr.autograd.graph.get_gradient_edge(y)
    (g,) = cr.autograd_grad((y**3).sum(), edge, create_graph=True)
    assert cr.autograd_grad(g.sum(), x)[0].tolist() == [6.0, 12.0]
    z = x * 1j
    edge = cr.autograd.graph.get_gradient_edge(z)
    (g,) = cr.autograd_grad((z * (2 - 1j)).real.sum(), edge)
    assert g.tolist() == [2 + 1j, 2 + 1j]


def test_edge_errors():
    get = cr.autograd.graph.get_gradient_edge
    with pytest.raises(RuntimeError, match="get the gradient edge of a Tensor that does not"):
        get(cr.ones(2))
    x = leaf([1.0])
    unused = get(x * 3)
    with pytest.raises(cr.AutogradError, match="input 0, of MulBackward0: no recorded operation"):
        cr.autograd_grad((x * 2).sum(), unused)
    with pytest.raises(ValueError, match=r"materialize_grads cannot be used when .* input 0"):
        cr.autograd_grad((x * 2).sum(), unused, materialize_grads=True)
    with pytest.raises(cr.AutogradError, match="a GradientEdge, the shape is not known"):
        cr.autograd_grad(unused, x)


def test_an_edge_among_the_inputs_of_backward_is_that_leafs():
    def program(lib):
        x, y = lib.leaf([1.0, 2.0]), lib.leaf([3.0, 4.0])
        edge = graph(lib).get_gradient_edge
        middle = x * y
        out = (middle * x).sum()
        lib.backward(out, inputs=[edge(x), edge(middle)], retain_graph=True)
        first = [x.grad.clone(), y.grad]
        lib.backward(out, inputs=[edge(x), y])
        return first, x.grad, y.grad

    same_as_torch(program)


def test_a_pass_starts_at_edges():
    def program(lib):
        x = lib.leaf([[1.0, 2.0], [3.0, 4.0]])
        middle, other = x.exp(), x.unbind()[1]
        edges = [graph(lib).get_gradient_edge(each) for each in (middle, other)]
        out = middle.sin().sum() + other.prod()
        grads = lib.grad(out, edges, retain_graph=True)
        return grads, lib.grad(edges, x, grads, retain_graph=True), lib.grad(out, x)

    same_as_torch(program)


def test_a_node_has_a_metadata_dict_for_its_lifetime():
    x = leaf([1.0])
    y = x * 2
    y.grad_fn.metadata["seen"] = note = cr.ones(1)
    assert y.grad_fn.metadata == {"seen": note}
    (next_node, _) = (y + 1).grad_fn.next_functions[0]
    assert next_node.metadata is y.grad_fn.metadata
    y.backward()
    assert x.grad.tolist() == [2.0]
    gone = weakref.ref(note)
    del y, note, next_node
    assert gone() is None


# --- what happens to saved values -----------------------------------------------------------------


def test_saved_values_may_be_written_to_where_copies_are_kept():
    def program(lib):
        x = lib.leaf([1.0, 2.0])
        with graph(lib).allow_mutation_on_saved_tensors():
            y = x * 1
            z = (y * y.exp()).sum()
            y.mul_(3)
            (g,) = lib.grad(z + y.sum(), x, create_graph=True)
            return g, lib.grad(g.sum(), x)

    same_as_torch(program)


def test_values_saved_on_the_cpu_come_back():
    def program(lib):
        x = lib.leaf([1.0, 2.0])
        with graph(lib).save_on_cpu(pin_memory=False):
            y = (x.exp() * x).sum()
        return lib.grad(y, x)

    same_as_torch(program)


# --- the rest -------------------------------------------------------------------------------------


def test_increment_version():
    def program(lib):
        x = lib.leaf([1.0, 2.0])
        y = x * 1
        z = y * y
        graph(lib).increment_version(y)
        graph(lib).increment_version([x, y])
        versions = [x._version, y._version]
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            lib.backward(z.sum())
        return versions

    same_as_torch(program)


def test_saved_tensors_hooks_can_be_refused():
    def program(lib):
        def hooks():
            return graph(lib).saved_tensors_hooks(lambda t: t, lambda t: t)

        seen = []
        with graph(lib).disable_saved_tensors_hooks("not here"):
            with pytest.raises(RuntimeError, match="not here"), hooks():
                seen.append("entered")
            x = lib.leaf([2.0])
            lib.backward((x * x).sum())
        with hooks():
            refusal = graph(lib).disable_saved_tensors_hooks("nor there")
            with pytest.raises(RuntimeError, match="nor there"), refusal:
                seen.append("entered")
            lib.backward((x * x).sum())
        return seen, x.grad

    same_as_torch(program)


def test_inference_mode():
    def program(lib):
        w = lib.leaf([2.0])
        seen = []
        with lib.inference_mode():
            seen.append((w * 3).requires_grad)
            with lib.inference_mode(mode=False):
                seen.append(lib.is_grad_enabled())
        seen.append(lib.is_grad_enabled())

        @lib.inference_mode
        def bare(x):
            return x * 2

        @lib.inference_mode()
        def called(x):
            return x * 2

        return [*seen, bare(w).requires_grad, called(w).requires_grad]

    same_as_torch(program)


def test_variable():
    x = leaf([1.0, 2.0])
    y = cr.autograd.Variable(x * 2, requires_grad=True)
    assert (y.is_leaf, y.requires_grad, y.tolist()) == (True, True, [2.0, 4.0])
    assert not cr.autograd.Variable(x).requires_grad


def test_the_names_of_the_submodules():
    assert cr.autograd.function.Function is cr.autograd.Function
    assert cr.autograd.function.once_differentiable is cr.once_differentiable
    assert issubclass(cr.autograd.graph.Node, object)
    assert isinstance((leaf(1.0) * 2).grad_fn, cr.autograd.graph.Node)


def test_grad_modes_are_where_pytorch_has_them():
    with cr.autograd.grad_mode.no_grad():
        assert not cr.is_grad_enabled()


def test_tensors_are_variables():
    assert isinstance(cr.ones(2), cr.autograd.Variable)
    assert not isinstance([1.0], cr.autograd.Variable)


def test_ctx_is_of_the_class_that_annotations_name():
    seen = []

    def forward(ctx: cr.autograd.function.FunctionCtx, x):
        seen.append(type(ctx))
        return x * 2

    cr.autograd_function(forward, lambda ctx, g: g)(leaf([1.0]))
    assert seen == [cr.autograd.function.FunctionCtx]


@cr.autograd_function
def _squares(ctx, x):
    ctx.save_for_backward(x)
    return (x * x,)


@_squares.backward
def _(ctx, g):
    return 2 * ctx.saved_tensors[0] * g


@pytest.mark.parametrize(
    "function",
    [
        lambda x: _squares(x)[0],  # a tuple of one
        lambda x: cr.unbind((x * x)[None])[0],
        lambda x: cr.split(x * x, 3)[0],
        lambda x: cr.unbind(cr.stack([x, x * x]))[1],
    ],
)
def test_a_pass_begins_at_the_edge_of_one_of_several_outputs(function):
    x = cr.tensor([3.0, 4.0, 5.0], requires_grad=True)
    edge = cr.autograd.graph.get_gradient_edge(function(x))
    (grad,) = cr.autograd_grad([edge], [x], [cr.ones(3)], create_graph=True)
    assert grad.tolist() == [6.0, 8.0, 10.0]
    second = cr.hessian(lambda x: function(x).sum())(x.detach())
    assert second.tolist() == cr.diag(cr.full((3,), 2.0)).tolist()
