"""SEMANTICS 26–29 and 73: grad modes, and what they mean for factories and for updates by hand."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import chainrule as cr
from chainrule.autograd import modes
from helpers.tensors import leaf, memory
from helpers.torch_comparison import same_as_torch


@pytest.fixture(autouse=True)
def _modes_are_left_as_found():
    """Whatever a test does, it has to leave recording on, and anomaly mode off."""
    assert cr.is_grad_enabled()
    yield
    left = cr.is_grad_enabled(), cr.is_anomaly_enabled()
    cr.set_grad_enabled(True)
    cr.set_detect_anomaly(False)
    assert left == (True, False)


def recorded():
    return (leaf([1.0]) * 2).requires_grad


# --- 26: the modes --------------------------------------------------------------------------------


def test_s26_no_grad():
    x = leaf([1.0])
    with cr.no_grad():
        assert not cr.is_grad_enabled()
        y = x * 2
    assert cr.is_grad_enabled()
    assert not y.requires_grad
    assert y.grad_fn is None
    assert y.is_leaf
    assert recorded()


def test_s26_enable_grad():
    with cr.no_grad():
        with cr.enable_grad():
            assert recorded()
        assert not recorded()
    with cr.enable_grad():
        assert recorded()


def test_s26_they_nest():
    seen = []
    with cr.no_grad():
        with cr.enable_grad():
            with cr.no_grad(), cr.no_grad():
                seen.append(recorded())
            seen.append(recorded())
        seen.append(recorded())
    assert [*seen, recorded()] == [False, True, False, True]


@pytest.mark.parametrize("block", [cr.no_grad, cr.enable_grad, lambda: cr.set_grad_enabled(False)])
def test_s26_they_are_restored_after_an_exception(block):
    with pytest.raises(KeyError), block():
        raise KeyError
    assert recorded()


def test_s26_restored_to_what_was_before_and_not_to_on():
    with cr.no_grad():
        with pytest.raises(KeyError), cr.enable_grad():
            raise KeyError
        assert not recorded()


@pytest.mark.parametrize("decorator", [cr.no_grad(), cr.no_grad])
def test_s26_as_decorators_with_and_without_parentheses(decorator):
    @decorator
    def function(a, *, b):
        """What it does."""
        return a + b, recorded()

    assert function(1, b=2) == (3, False)
    assert function(1, b=2) == (3, False)
    assert recorded()
    assert function.__name__ == "function"
    assert function.__doc__ == "What it does."
    assert str(inspect.signature(function)) == "(a, *, b)"


def test_s26_enable_grad_as_a_decorator():
    with cr.no_grad():
        assert cr.enable_grad()(recorded)()
        assert cr.enable_grad(recorded)()
        assert not recorded()


def test_s26_decorators_restore_after_an_exception():
    @cr.no_grad()
    def fail():
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert recorded()


def test_s26_a_decorated_function_may_call_itself():
    @cr.no_grad()
    def down(n):
        return recorded() or (n > 0 and down(n - 1))

    assert down(5) is False
    assert recorded()


def test_s26_decorated_methods():
    class Model:
        @cr.no_grad()
        def predict(self):
            return self, recorded()

    model = Model()
    assert model.predict() == (model, False)


@pytest.mark.parametrize("block", [cr.no_grad, cr.enable_grad, cr.set_grad_enabled(True)])
def test_s26_what_is_no_function_can_not_be_decorated(block):
    with pytest.raises(TypeError, match=r"grad is a context manager .* got bool: for a flag there"):
        block(True)


# --- 26: around generators ------------------------------------------------------------------------


@cr.no_grad()
def steps():
    for _ in range(3):
        yield recorded()


def test_s26_around_generators_the_mode_switches_at_each_yield():
    inside, outside = [], []
    for flag in steps():
        inside.append(flag)
        outside.append(recorded())
    assert inside == [False] * 3
    assert outside == [True] * 3


def test_s26_a_generator_left_early_leaves_no_mode_behind():
    generator = steps()
    next(generator)
    assert recorded()
    del generator
    assert recorded()


def test_s26_enable_grad_around_a_generator_under_no_grad():
    generator = cr.enable_grad()(lambda: (recorded() for _ in range(2)))

    @cr.enable_grad()
    def numbers():
        yield recorded()
        yield recorded()

    with cr.no_grad():
        assert list(numbers()) == [True, True]
        assert not recorded()
    assert list(generator()) == [True, True]


def test_s26_what_is_sent_to_a_generator_and_returned_by_it():
    @cr.no_grad()
    def echo():
        got = []
        while len(got) < 2:
            got.append((yield recorded()))
        return got

    generator = echo()
    assert next(generator) is False
    assert generator.send("a") is False
    assert recorded()
    with pytest.raises(StopIteration) as stop:
        generator.send("b")
    assert stop.value.value == ["a", "b"]
    assert recorded()


def test_s26_what_is_thrown_into_a_generator():
    @cr.no_grad()
    def careful():
        try:
            yield 1
        except KeyError:
            yield recorded()

    generator = careful()
    next(generator)
    assert generator.throw(KeyError()) is False
    assert recorded()


def test_s26_closing_a_generator_runs_its_finally_in_the_mode():
    seen = []

    @cr.no_grad()
    def careful():
        try:
            yield
        finally:
            seen.append(recorded())

    generator = careful()
    next(generator)
    generator.close()
    assert seen == [False]
    assert recorded()


def test_s26_an_exception_in_a_generator():
    @cr.no_grad()
    def fail():
        yield 1
        raise KeyError

    generator = fail()
    next(generator)
    with pytest.raises(KeyError):
        next(generator)
    assert recorded()


def test_s26_a_block_in_a_generator_holds_over_its_yields_and_stays_inside():
    @cr.no_grad()
    def generator():
        with cr.enable_grad():
            yield recorded()
            yield recorded()
        yield recorded()
        with cr.no_grad(), cr.enable_grad():
            yield recorded()
        yield recorded()

    expected = [True, True, False, True, False]
    assert [(flag, recorded()) for flag in generator()] == [(flag, True) for flag in expected]
    with cr.no_grad():
        assert [(flag, recorded()) for flag in generator()] == [(flag, False) for flag in expected]
    assert recorded()


def test_s26_the_mode_outside_a_block_in_a_generator_as_in_torch():
    def program(lib):
        @lib.module.no_grad()
        def generator():
            with lib.module.enable_grad():
                yield lib.module.is_grad_enabled()
            yield lib.module.is_grad_enabled()

        return [[flag, lib.module.is_grad_enabled()] for flag in generator()]

    same_as_torch(program)


def test_s26_a_decorated_generator_is_one_still():
    assert inspect.isgeneratorfunction(steps)
    assert steps.__name__ == "steps"


def test_s26_delegating_to_a_decorated_generator():
    def outer():
        flags = yield from steps()
        assert flags is None

    assert list(outer()) == [False] * 3
    assert recorded()


# --- 26: set_grad_enabled -------------------------------------------------------------------------


def test_s26_set_grad_enabled_as_a_call():
    cr.set_grad_enabled(False)
    assert not recorded()
    cr.set_grad_enabled(True)
    assert recorded()


def test_s26_set_grad_enabled_as_a_block():
    with cr.set_grad_enabled(False):
        assert not recorded()
        with cr.set_grad_enabled(True):
            assert recorded()
        assert not recorded()
    assert recorded()


def test_s26_set_grad_enabled_as_a_block_later_and_again():
    off = cr.set_grad_enabled(False)
    cr.set_grad_enabled(True)
    for _ in range(2):
        with off:
            assert not recorded()
        assert recorded()


def test_s26_set_grad_enabled_as_a_decorator():
    @cr.set_grad_enabled(False)
    def function():
        return recorded()

    assert recorded()
    assert function() is False
    assert recorded()


def test_s26_a_call_inside_a_block_ends_with_the_block():
    with cr.no_grad():
        cr.set_grad_enabled(True)
        assert recorded()
    assert recorded()
    with cr.enable_grad():
        cr.set_grad_enabled(False)
    assert recorded()


def test_s26_a_block_used_again_leaves_the_blocks_around_it_alone():
    off = cr.set_grad_enabled(False)
    cr.set_grad_enabled(True)
    with cr.no_grad():
        with cr.enable_grad():
            with off:
                pass
            assert recorded()
        assert not recorded()
    assert recorded()


def test_s26_set_grad_enabled_takes_the_flag_as_it_comes():
    is_train = leaf([1.0]).requires_grad
    with cr.set_grad_enabled(mode=not is_train):
        assert not recorded()


def test_s26_modes_as_in_torch():
    def program(m):
        seen = []

        def look():
            seen.append((m.is_grad_enabled(), bool((m.leaf([1.0]) * 2).requires_grad)))

        off = m.set_grad_enabled(False)
        look()
        with m.enable_grad():
            look()
            with off:
                look()
            look()
        look()
        m.set_grad_enabled(True)
        with off, m.set_grad_enabled(True):
            look()
        look()
        return seen

    same_as_torch(program)


# --- 26: threads ----------------------------------------------------------------------------------


def in_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_s26_new_threads_start_enabled():
    with cr.no_grad():
        assert in_thread(recorded)
        assert not recorded()
    cr.set_grad_enabled(False)
    try:
        assert in_thread(recorded)
    finally:
        cr.set_grad_enabled(True)


def test_s26_threads_switch_for_themselves():
    entered, leave, seen = threading.Event(), threading.Event(), []

    def other():
        with cr.no_grad():
            entered.set()
            leave.wait(10)
            seen.append(recorded())

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(10)
    assert recorded()
    leave.set()
    thread.join()
    assert seen == [False]


# --- 27: factories under no_grad ------------------------------------------------------------------

FACTORIES = {
    "tensor": lambda **kw: cr.tensor([1.0], **kw),
    "zeros": lambda **kw: cr.zeros(1, **kw),
    "ones": lambda **kw: cr.ones(1, **kw),
    "full": lambda **kw: cr.full((1,), 2.0, **kw),
    "empty": lambda **kw: cr.empty(1, **kw),
    "eye": lambda **kw: cr.eye(2, **kw),
    "arange": lambda **kw: cr.arange(2.0, **kw),
    "linspace": lambda **kw: cr.linspace(0, 1, 3, **kw),
    "rand": lambda **kw: cr.rand(2, **kw),
    "randn": lambda **kw: cr.randn(2, **kw),
    "normal": lambda **kw: cr.normal(0.0, 1.0, (2,), **kw),
    "zeros_like": lambda **kw: cr.zeros_like(cr.ones(1), **kw),
    "ones_like": lambda **kw: cr.ones_like(cr.ones(1), **kw),
    "full_like": lambda **kw: cr.full_like(cr.ones(1), 2.0, **kw),
    "empty_like": lambda **kw: cr.empty_like(cr.ones(1), **kw),
    "rand_like": lambda **kw: cr.rand_like(cr.ones(1), **kw),
    "randn_like": lambda **kw: cr.randn_like(cr.ones(1), **kw),
    "randint": lambda **kw: cr.randint(0, 3, (2,), dtype=cr.float32, **kw),
    "randint_like": lambda **kw: cr.randint_like(cr.ones(1), 3, **kw),
    "randperm": lambda **kw: cr.randperm(3, dtype=cr.float64, **kw),
}


@pytest.mark.parametrize("make", FACTORIES.values(), ids=FACTORIES.keys())
def test_s27_factories_give_leaves_that_require_grad(make):
    with cr.no_grad():
        x = make(requires_grad=True)
        y = x * 2
    assert x.requires_grad
    assert x.is_leaf
    assert not y.requires_grad
    assert y.grad_fn is None
    (x * 2).sum().backward()
    assert x.grad.shape == x.shape


def test_s27_a_leaf_stays_usable_outside():
    with cr.no_grad():
        x = leaf([3.0])
    (x * x).backward()
    assert x.grad.tolist() == [6]


OPERATIONS = {
    "arithmetic": lambda x: x * x + 1,
    "function": lambda x: x.exp(),
    "reduction": lambda x: x.sum(),
    "view": lambda x: x.T,
    "index": lambda x: x[0],
    "mask": lambda x: x[x > 0],
    "several": lambda x: x.unbind()[0],
    "joined": lambda x: cr.cat([x, x]),
    "matmul": lambda x: x @ x,
    "clone": lambda x: x.clone(),
    "cast": lambda x: x.double(),
    "custom": lambda x: cr.autograd_function(lambda ctx, a: a * 2)(x),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
def test_s27_operations_give_no_grad_fn(operation):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    with cr.no_grad():
        y = operation(x)
    assert y.grad_fn is None
    assert not y.requires_grad
    assert y.is_leaf
    assert operation(x).requires_grad


def test_s27_a_result_made_under_no_grad_is_a_constant_outside():
    x = leaf([3.0])
    with cr.no_grad():
        c = x * x
    (x * c).backward()
    assert x.grad.tolist() == [9]


# --- 28: updates by hand --------------------------------------------------------------------------


def test_s28_sgd_by_hand_keeps_leaf_and_grad_the_same_objects():
    w = leaf([1.0, 2.0])
    before, data = w, memory(w)
    (w * 0).sum().backward()
    grad = w.grad
    for _ in range(3):
        (w * w).sum().backward()
        assert w.grad is grad
        with cr.no_grad():
            assert w.sub_(0.25 * w.grad) is w
            assert w.grad.zero_() is grad
    assert w is before
    assert w.is_leaf
    assert w.requires_grad
    assert w.tolist() == [0.125, 0.25]
    assert data.tolist() == [0.125, 0.25]
    assert grad.tolist() == [0, 0]


UPDATES = {
    "sub_": lambda w, g: w.sub_(g),
    "-=": lambda w, g: w.__isub__(g),
    "add_ with alpha": lambda w, g: w.add_(g, alpha=-1),
    "setitem": lambda w, g: w.__setitem__(slice(None), w - g),
    "copy_": lambda w, g: w.copy_(w - g),
    "through a view": lambda w, g: w[:].sub_(g),
    "through detach": lambda w, g: w.detach().sub_(g),
}


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES.keys())
def test_s28_every_way_to_update(update):
    w = leaf([1.0, 2.0])
    (w * w).sum().backward()
    with cr.no_grad():
        update(w, w.grad)
    assert w.tolist() == [-1, -2]
    assert w.is_leaf
    assert w.requires_grad
    (w * w).sum().backward()
    assert w.grad.tolist() == [0, 0]


def test_s28_zeroing_grad_needs_no_mode():
    w = leaf([1.0])
    (w * w).backward()
    grad = w.grad
    w.grad.zero_()
    assert w.grad is grad
    assert grad.tolist() == [0]


def test_s28_hooks_survive_updates():
    w, calls = leaf([1.0]), []
    w.register_hook(lambda g: calls.append(g.item()))
    for _ in range(2):
        (w * w).backward()
        with cr.no_grad():
            w.sub_(0.5 * w.grad)
            w.grad.zero_()
    assert calls == [2, 0]


def test_s28_as_in_torch():
    def program(m):
        w, losses = m.leaf([[1.0, -2.0], [0.5, 3.0]]), []
        for _ in range(20):
            loss = ((w @ w) ** 2).sum()
            loss.backward()
            losses.append(loss)
            with m.no_grad():
                w -= 1e-3 * w.grad
                w.grad.zero_()
        return losses, w

    same_as_torch(program, rtol=1e-9)


# --- 29: what updates do to graphs recorded before ------------------------------------------------


def test_s29_in_place_under_no_grad_bumps_the_version():
    w = leaf([1.0])
    before = w._version
    with cr.no_grad():
        w.sub_(1)
        w.add_(1)
    assert w._version == before + 2


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES.keys())
def test_s29_a_graph_recorded_before_fails(update):
    w = leaf([1.0, 2.0])
    loss = (w * w).sum()
    with cr.no_grad():
        update(w, cr.ones(2))
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation") as info:
        loss.backward()
    assert "which is a leaf, is at version 1; expected version 0" in str(info.value)
    assert w.grad is None


def test_s29_one_that_did_not_save_the_values_does_not():
    w = leaf([1.0, 2.0])
    loss = (w + 1).sum()
    with cr.no_grad():
        w.sub_(1)
    loss.backward()
    assert w.grad.tolist() == [1, 1]


def test_s29_rebinding_under_no_grad_loses_grad_and_requires_grad():
    w = leaf([1.0])
    (w * w).backward()
    with cr.no_grad():
        w = w - 0.1 * w.grad
    assert w.grad is None
    assert not w.requires_grad


def test_s29_and_the_next_backward_explains_it():
    w = leaf([1.0])
    (w * w).backward()
    with cr.no_grad():
        w = w - 0.1 * w.grad
    with pytest.raises(RuntimeError, match=r"does not require grad.*no_grad.*rebound"):
        (w * w).backward()


def test_s29_rebinding_while_recording_makes_a_non_leaf_and_says_so():
    w = leaf([1.0])
    (w * w).backward()
    w = w - 0.1 * w.grad
    (w * w).backward()
    with pytest.warns(UserWarning, match=r"not a leaf.*rebound"):
        assert w.grad is None


# --- 73: one object many times, and no leaks ------------------------------------------------------


def test_s73_one_object_nests_with_itself():
    ng = cr.no_grad()
    with ng:
        with ng:
            with ng:
                assert not recorded()
            assert not recorded()
        assert not recorded()
    assert recorded()


@pytest.mark.parametrize("make", [cr.no_grad, lambda: cr.set_grad_enabled(False)])
def test_s73_one_object_after_another(make):
    block = make()
    cr.set_grad_enabled(True)
    for _ in range(3):
        with block:
            assert not recorded()
        assert recorded()


def test_s73_two_objects_crosswise():
    off, on = cr.no_grad(), cr.enable_grad()
    with off:
        with on:
            with off, on:
                assert recorded()
            assert recorded()
        assert not recorded()
    assert recorded()


ON = {"enable_grad": cr.enable_grad, "set(True)": lambda: cr.set_grad_enabled(True)}
OFF = {"no_grad": cr.no_grad, "set(False)": lambda: cr.set_grad_enabled(False)}


@pytest.mark.parametrize("off", OFF.values(), ids=OFF.keys())
@pytest.mark.parametrize("on", ON.values(), ids=ON.keys())
def test_s73_blocks_may_end_in_another_order_than_they_began(on, off):
    def inside(block):
        with block():
            yield recorded()

    for first, second, flag in ((off, on, True), (on, off, False)):
        steps = inside(second)
        with first():
            assert next(steps) is flag
        assert recorded()
        assert list(steps) == []
        assert recorded()


def hooks():
    return cr.saved_tensors_hooks(lambda t: t, lambda t: t)


CONTEXTS = (cr.no_grad, cr.enable_grad, hooks, lambda: cr.detect_anomaly(False))


@pytest.mark.parametrize("before", [None, *CONTEXTS[:3]])
def test_s73_every_order_of_three_ends(before):
    """The end of a block ends those in it, too; what has ended already, ends nothing more."""
    for makers in itertools.permutations([each for each in CONTEXTS if each is not before], 3):
        for order in itertools.permutations(range(3)):
            with contextlib.ExitStack() as around:
                if before is not None:
                    around.enter_context(before())
                states, blocks = [modes.MODES.get()], [make() for make in makers]
                for block in blocks:
                    block.__enter__()
                    states.append(modes.MODES.get())
                for number in order:
                    blocks[number].__exit__(None, None, None)
                    del states[number + 1 :]
                    assert modes.MODES.get() is states[-1]
            assert modes.MODES.get() is None


def test_s73_a_call_in_a_block_ends_with_it():
    with cr.no_grad():
        with cr.set_grad_enabled(True):
            cr.set_grad_enabled(False)
        assert not recorded()
        cr.set_grad_enabled(True)
        with cr.no_grad():
            cr.set_grad_enabled(True)
            assert recorded()
        assert recorded()
    assert recorded()
    with cr.enable_grad():
        cr.set_grad_enabled(False)
    assert recorded()


def test_s73_nested_blocks_survive_exceptions():
    ng = cr.no_grad()
    with pytest.raises(KeyError), ng, ng, cr.enable_grad():
        raise KeyError
    assert recorded()


def test_s73_anomaly_mode_nests_as_well():
    block = cr.detect_anomaly()
    with block:
        with block, cr.no_grad():
            assert cr.is_anomaly_enabled()
            assert not cr.is_grad_enabled()
        assert cr.is_anomaly_enabled()
        assert cr.is_grad_enabled()
    assert not cr.is_anomaly_enabled()


def test_s73_set_detect_anomaly_as_a_call_and_as_a_block():
    cr.set_detect_anomaly(True)
    assert cr.is_anomaly_enabled()
    cr.set_detect_anomaly(False)
    with cr.set_detect_anomaly(True):
        assert cr.is_anomaly_enabled()
    assert not cr.is_anomaly_enabled()


def test_s73_one_object_in_many_threads():
    ng, together, seen = cr.no_grad(), threading.Barrier(4), []

    def work():
        for _ in range(50):
            with ng:
                together.wait(10)
                seen.append(recorded())
            seen.append(not recorded())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [False] * 400
    assert recorded()


def test_s73_modes_do_not_leak_across_awaits():
    seen = {}

    async def off(inside, outside):
        with cr.no_grad():
            inside.set()
            await outside.wait()
            seen["off"] = recorded()
        seen["off, after"] = recorded()

    async def on(inside, outside):
        await inside.wait()
        seen["on"] = recorded()
        outside.set()

    async def main():
        events = asyncio.Event(), asyncio.Event()
        await asyncio.gather(off(*events), on(*events))

    asyncio.run(main())
    assert seen == {"on": True, "off": False, "off, after": True}
    assert recorded()


def test_s73_decorated_coroutines_run_in_the_mode():
    @cr.no_grad()
    async def work():
        before = recorded()
        await asyncio.sleep(0)
        return before, recorded()

    async def main():
        flags, meanwhile = await asyncio.gather(work(), asyncio.sleep(0, recorded()))
        return flags, meanwhile, recorded()

    assert asyncio.run(main()) == ((False, False), True, True)
    assert inspect.iscoroutinefunction(work)


def test_s73_decorated_asynchronous_generators_too():
    @cr.no_grad()
    async def numbers():
        yield recorded()
        await asyncio.sleep(0)
        yield recorded()

    async def main():
        return [(inside, recorded()) async for inside in numbers()]

    assert asyncio.run(main()) == [(False, True), (False, True)]


def test_s73_a_block_in_a_decorated_asynchronous_generator_stays_inside():
    @cr.no_grad()
    async def generator():
        with cr.enable_grad():
            yield recorded()
            await asyncio.sleep(0)
            yield recorded()
        yield recorded()

    async def collect():
        return [(flag, recorded()) async for flag in generator()]

    assert asyncio.run(collect()) == [(True, True), (True, True), (False, True)]


def test_s73_a_call_in_a_task_stays_there():
    async def off():
        cr.set_grad_enabled(False)
        await asyncio.sleep(0)
        return recorded()

    async def main():
        return await asyncio.create_task(off()), recorded()

    assert asyncio.run(main()) == (False, True)


def test_s73_as_in_torch():
    def program(m):
        seen = []
        ng, eg = m.no_grad(), m.enable_grad()
        with ng:
            with eg, ng:
                seen.append(m.is_grad_enabled())
            seen.append(m.is_grad_enabled())
            with eg:
                seen.append(m.is_grad_enabled())
        seen.append(m.is_grad_enabled())
        return seen

    same_as_torch(program)
