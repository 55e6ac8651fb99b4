"""A KeyboardInterrupt at any bytecode instruction leaves chainrule usable, and its state right.

Each scenario is run once for each instruction and call site that it comes by, with a
KeyboardInterrupt there. CI takes a sample of them, the same in each run. All of them, which takes
about an hour and a half:

    CHAINRULE_INTERRUPTS=all python3 -m pytest tests/integration/test_interrupts.py
"""

import contextlib
import contextvars
import ctypes
import gc
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd.tensor import Tensor
from chainrule.compiler.native import jit
from chainrule.compiler.native.code import _code_of
from chainrule.interrupts import Latch, start
from chainrule.utils.checkpoint import checkpoint
from helpers.interrupts import interrupt, places
from helpers.parameters import thorough

pytestmark = [
    pytest.mark.no_verify("eager runs of the user's code would be interrupted, too"),
    # Python ignores what a finaliser raises.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SAMPLE = 10
"""Number of instructions of each scenario that CI takes."""

CHECKED_EVERY = 8
"""Number of interrupts after which a new function is compiled, where the scenario compiles none."""

_SLOTS = ("_array", "_frozen", "_grad", "_node", "_view")
PLAIN_SLOTS = [vars(Tensor)[name] for name in _SLOTS]


FOLDER = tempfile.TemporaryDirectory()


def loss(w, x):
    return (w * x).sin().sum()


@cr.autograd_function
def squared(ctx, x):
    ctx.save_for_backward(x=x)
    return x * x


@squared.backward
def _(ctx, g):
    return 2 * g * ctx.saved_variables.x


class World:
    """Tensors and functions that a scenario uses, new for each interrupt."""

    def __init__(self):
        self.w = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
        self.x = cr.tensor([0.5, -1.0, 2.0])
        self.calls = []
        self.checks = []  # of what else the scenario has changed

    def compiled(self, function, **options):
        """Return a compiled function; `check` calls it again."""
        made = cr.compile(function, **options)
        self.calls.append((made, function))
        return made


def eager(world):
    loss(world.w, world.x).backward()


def backward(world):
    w = world.w
    with_hook = w * 2
    with_hook.register_hook(lambda g: g * 1)
    y = (with_hook * w + w[1:].sum() + w.reshape(3, 1).sum()).exp().sum()
    (g,) = cr.autograd_grad(y, w, create_graph=True)
    g.sum().backward()


def in_place(world):
    w = world.w
    y = w * 1
    saved, before = y * y, w.tolist()

    def check():
        # Each is right for the values that there are now, or says that it isn't.
        with contextlib.suppress(cr.errors.AutogradError):
            (g,) = cr.autograd_grad(y.sum(), w, retain_graph=True)
            assert (w * g).tolist() == y.flatten().tolist()
        with contextlib.suppress(cr.errors.AutogradError):
            (g,) = cr.autograd_grad(saved.sum(), w)
            assert g.tolist() == [2 * x for x in before]

    world.checks.append(check)
    y[1:].mul_(2.0)
    y *= 3
    y[0] = 2 * w[0]
    y.unsqueeze_(0)
    world.x.add_(0)


def modes(world):
    @cr.no_grad()
    def unrecorded(x):
        return x * 2

    def hook(t):
        return t

    unrecorded(world.w)
    with cr.saved_tensors_hooks(hook, hook):
        y = loss(world.w, world.x)
    y.backward()


def forward_mode(world):
    cr.jvp(loss, (world.w, world.x), (world.x, world.x))
    cr.hvp(lambda w: loss(w, world.x), (world.w,), (world.x,))


def custom(world):
    squared(world.w).sum().backward()


def checkpointed(world):
    checkpoint(lambda w: w.exp().sin(), world.w).sum().backward()


def mapped(world):
    xs = cr.stack([world.x, world.x])
    cr.vmap(cr.grad(loss), (None, 0))(world.w, xs)
    cr.vmap(lambda x: x + cr.rand(3), randomness="different")(xs)


def compiled(world):
    fn = world.compiled(lambda w, x: loss(w, x), backend="numpy")
    fn(world.w, world.x).backward()


def compiled_again(world):
    fn = cr.compile(loss, backend="numpy")
    fn(world.w, world.x)
    world.calls.append((fn, loss))
    fn(world.w, world.x).backward()


def loaded(world):
    _code_of.cache_clear()
    backend = "native" if jit.is_installed() else "numpy"
    fn = world.compiled(lambda w, x: loss(w, x), backend=backend)
    fn(world.w, world.x).backward()


def exported(world):
    """Export a function whose mean depends on sizes, which takes traces of several sizes."""
    w, x = world.w.detach(), world.x
    path = Path(FOLDER.name, "exported.py")
    cr.export(cr.value_and_grad(lambda w, x: (w * x).sin().mean()), path, w, x)


def verified(world):
    held = cr.zeros(3)
    fn = cr.compile(lambda w, x: (loss(w, x), held.add_(1))[0], backend="numpy", verify=1)
    world.checks.append(lambda: held.tolist()[0] in (0, 1) or pytest.fail(f"{held}"))
    fn(world.w, world.x).backward()


def loop(world):
    def run(w, x):
        c, ys = cr.scan(lambda c, x: (c * w, (c + x).sum()), w, cr.stack([x, x]))
        return cr.cond(c.sum() > 0, lambda: c.sum(), lambda: ys.sum())

    run(world.w, world.x).backward()
    world.compiled(run, backend="numpy")(world.w, world.x).backward()


def training_step(world):
    p = world.w.detach().clone().requires_grad_()
    optimizers = [cr.optim.SGD([p], 0.1, momentum=0.9), cr.optim.Adam([p], 0.1)]
    saved, before = (p * p).sum(), p.tolist()

    def step(x):
        for optimizer in optimizers:
            optimizer.zero_grad()
            loss(p, x).backward()
            optimizer.step()
        return p.sum()

    def check():
        with contextlib.suppress(cr.errors.AutogradError):
            (g,) = cr.autograd_grad(saved, p)
            assert g.tolist() == [2 * x for x in before]
        for optimizer in optimizers:
            optimizer.load_state_dict(optimizer.state_dict())
        for function in (step, cr.compile(step, backend="numpy")):
            before_step = p.tolist()
            assert np.isfinite(function(world.x).item())
            assert p.tolist() != before_step
            for optimizer in optimizers:
                for kept in optimizer.state_dict()["state"].values():
                    assert all(np.isfinite(value.numpy()).all() for value in kept.values())

    world.checks.append(check)
    optimizers[0].step(lambda: step(world.x))
    for optimizer in optimizers:
        optimizer.load_state_dict(optimizer.state_dict())
    cr.compile(step, backend="numpy")(world.x)


def first_step(world):
    """Compile a step that makes the state of the optimiser."""
    p = world.w.detach().clone().requires_grad_()
    optimizer = cr.optim.Adam([p], 0.1)

    def step(x):
        optimizer.zero_grad()
        loss(p, x).backward()
        optimizer.step()
        return p.sum()

    compiled = cr.compile(step, backend="numpy")

    def check():
        for function in (compiled, step):
            assert np.isfinite(function(world.x).item())
        (kept,) = optimizer.state_dict()["state"].values()
        assert kept["step"].item() in (2, 3)

    world.checks.append(check)
    compiled(world.x)


def scanned(world):
    """A compiled gradient of a checkpointed scan whose steps use `vmap`."""

    def run(w, x):
        def step(c, s):
            return cr.vmap(lambda z: z * s.sum())(c).sin(), c

        c, ys = cr.scan(step, w, cr.stack([x, x]), checkpoint=True)
        return c.sum() + ys.sum()

    run(world.w, world.x).backward()
    world.compiled(run, backend="numpy")
    cr.compile(cr.grad(run), backend="numpy")(world.w, world.x)


def jacobian(world):
    compiled = world.compiled(lambda w, x: (w * x).sin().sum(), backend="numpy")
    cr.jacobian(lambda w: compiled(w, world.x) * w)(world.w)
    cr.hessian(lambda w: compiled(w, world.x))(world.w)


def scheduled_step(world):
    """Compiled steps with a learning rate that changes from call to call."""
    p = world.w.detach().clone().requires_grad_()
    optimizer = cr.optim.SGD([p], 0.1, momentum=0.9)
    scheduler = cr.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

    def step(x):
        optimizer.zero_grad()
        loss(p, x).backward()
        optimizer.step()
        return p.sum()

    compiled = cr.compile(step, backend="numpy")

    def check():
        for function in (compiled, step):
            before, rate = p.tolist(), optimizer.param_groups[0]["lr"]
            assert np.isfinite(function(world.x).item())
            assert (p.tolist() != before) == (rate > 0)

    world.checks.append(check)
    for _ in range(3):
        compiled(world.x)
        scheduler.step()


def batches(world):
    data = cr.utils.data.TensorDataset(cr.arange(6.0), cr.arange(6.0) * 2)
    loader = cr.utils.data.DataLoader(data, batch_size=2, shuffle=True)
    world.checks.append(lambda: [len(x) for x, _ in loader] == [2, 2, 2] or 1 / 0)
    for x, y in loader:
        loss(x, y)


def saved(world):
    """Save over an older file: afterwards it is the old one or the new one."""
    path = Path(FOLDER.name) / "saved"
    cr.save({"w": cr.zeros(3)}, path)

    def check():
        assert cr.load(path)["w"].tolist() in ([0, 0, 0], [1, 2, 3])
        assert [p.name for p in path.parent.glob("saved*")] == ["saved"]

    world.checks.append(check)
    cr.save({"w": world.w.detach()}, path)
    cr.load(path)


def large(world):
    x = cr.ones(1 << 19, requires_grad=True)
    cr.softmax(x.reshape(512, 1024), -1).exp().sum().backward()


SCENARIOS = [
    eager,
    backward,
    in_place,
    modes,
    forward_mode,
    custom,
    checkpointed,
    mapped,
    compiled,
    compiled_again,
    loaded,
    exported,
    verified,
    loop,
    training_step,
    first_step,
    batches,
    saved,
    large,
]

LONG = [scanned, jacobian, scheduled_step]


def default_of(variable):
    """Return the value of a context variable that was never set."""
    try:
        return contextvars.Context().run(variable.get)
    except LookupError:
        return None


def state():
    """Return the state of this thread that an operation could leave changed."""
    for thread in threading.enumerate():
        # The compiler goes on for a while.
        if thread.name == "chainrule uninterrupted" and thread.is_alive():
            thread.join()
    changed = [(v.name, x) for v, x in contextvars.copy_context().items() if x != default_of(v)]
    return {
        **{name: value for name, value in changed if not name.startswith("numpy")},
        "numpy": np.geterr(),
        "bufsize": np.getbufsize(),
        "filters": list(warnings.filters),
        "collector": gc.isenabled(),
        "environment": dict(os.environ),
        "threads": cr.get_num_threads(),
        "kernels": cr.get_kernels() if hasattr(cr, "get_kernels") else None,
        "dtype": cr.get_default_dtype(),
    }


def check(world, before, compiling):
    """Check that eager operations, `vmap` and `compile` work as if nothing had happened."""
    after = state()
    changed = {k: after.get(k) for k in {**before, **after} if before.get(k) != after.get(k)}
    assert not changed, {k: (before.get(k), after.get(k)) for k in changed}
    w = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = cr.tensor([0.5, -1.0, 2.0])
    y = loss(w, x)
    assert repr(y).startswith("tensor(-0.7")
    y.backward()
    expected = x.numpy() * np.cos(w.detach().numpy() * x.numpy())
    assert np.array_equal(w.grad.numpy(), expected)
    both = cr.vmap(cr.grad(loss), (None, 0))(w, cr.stack([x, 2 * x]))
    assert np.array_equal(both[0].detach().numpy(), expected)
    if compiling:
        world.calls.append((cr.compile(lambda w, x: loss(w, x), backend="numpy"), loss))
    for function, plain in world.calls:
        values = []
        for f in (function, plain):
            w.grad = None
            out = f(w, x)
            out.backward()
            values.append([out.item(), *w.grad.tolist()])
        assert values[0] == pytest.approx(values[1])
    for each in world.checks:
        each()
    if world.w.grad is not None:
        assert isinstance(world.w.grad.numpy(), np.ndarray)
    assert world.w.tolist() == [1, 2, 3]
    assert world.x.tolist() == [0.5, -1, 2]
    assert [vars(Tensor)[name] for name in _SLOTS] == PLAIN_SLOTS


def failures(scenario, chosen):
    """Return a description of each place in `chosen` after which something was wrong."""
    found = []
    for number, place in enumerate(chosen):
        world, before = World(), state()
        try:
            interrupt(lambda: scenario(world), place)  # noqa: B023
            check(world, before, compiling=number % CHECKED_EVERY == 0 or bool(world.calls))
        except BaseException as error:
            found.append(f"{place}: {type(error).__name__} {str(error)[:150]}")
            repair(before)
    check(World(), state(), compiling=True)
    return found


def repair(before):
    for variable in contextvars.copy_context():
        if variable.name.startswith("chainrule"):
            variable.set(before.get(variable.name, default_of(variable)))
    np.seterr(**before["numpy"])
    np.setbufsize(before["bufsize"])


@pytest.mark.parametrize(
    "scenario",
    [thorough(s) if s in (exported, *LONG) else s for s in (*SCENARIOS, *LONG)],
    ids=lambda s: s.__name__,
)
def test_an_interrupt_leaves_nothing_behind(scenario):
    for _ in range(3):
        scenario(World())
    world = World()
    found = places(lambda: scenario(world))
    if os.environ.get("CHAINRULE_INTERRUPTS") != "all":
        found = random.Random(scenario.__name__).sample(found, min(SAMPLE, len(found)))
    assert failures(scenario, found) == []


# --- signals --------------------------------------------------------------------------------------


class Raised(int):
    """The number of a signal, whose attribute `now` raises it without a call of Python's."""

    now = property(ctypes.CDLL(None)["raise"])


@pytest.mark.parametrize(
    "make",
    [
        cr.no_grad,
        cr.enable_grad,
        lambda: cr.set_grad_enabled(False),
        lambda: cr.saved_tensors_hooks(lambda t: t, lambda t: t),
    ],
)
def test_a_signal_during_the_last_operator_of_a_block_is_raised_outside_of_it(make):
    signum = Raised(signal.SIGINT)
    before = state()
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt), make():
            signum.now  # noqa: B018 - raised when `__exit__` is called
        assert state() == before


def survive(seconds):
    """Run scenarios, check after each, and print the number of signals that cut one off."""
    end, count, listening = time.monotonic() + seconds, 0, False
    world, source = World(), random.Random(20240601)

    def handler(*_):
        nonlocal listening
        if listening:
            listening = False
            raise KeyboardInterrupt

    def run_until_interrupted():
        nonlocal listening
        listening = True
        while listening:  # in a finaliser it raises nothing
            source.choice(SCENARIOS)(world)

    signal.signal(signal.SIGINT, handler)
    print("ready", flush=True)
    while time.monotonic() < end:
        world, before = World(), state()
        with contextlib.suppress(KeyboardInterrupt):
            # No loop here: Python 3.13 does not count the end of one as part of the block.
            run_until_interrupted()
        count += 1
        time.sleep(0.01)  # a thread may be about to start
        check(world, before, compiling=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("signals:", count)


def test_signals_at_random_moments():
    folder = Path(__file__).parent
    paths = [str(folder), str(folder.parent), *sys.path]
    code = (
        f"import sys; sys.path[:0] = {paths!r}\nimport test_interrupts; test_interrupts.survive(3)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    source, deadline = random.Random(0), time.monotonic() + 120
    assert child.stdout.readline() == "ready\n"
    while child.poll() is None:
        if time.monotonic() > deadline:  # it hangs
            child.kill()
        child.send_signal(signal.SIGINT)
        time.sleep(source.uniform(0.001, 0.05))
    output, errors = child.communicate()
    assert child.returncode == 0, errors
    assert int(output.removeprefix("signals: ")) > 5


# --- threads --------------------------------------------------------------------------------------


def test_a_latch_can_be_waited_for_after_an_interrupt():
    def handler(*_):
        raise KeyboardInterrupt

    latch, before = Latch(), signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(2):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            with pytest.raises(KeyboardInterrupt):
                latch.wait()
    finally:
        signal.signal(signal.SIGALRM, before)
    threading.Timer(0.01, latch.set).start()
    latch.wait()
    latch.set()
    latch.wait()


def test_an_interrupted_import_holds_up_no_other_thread():
    code = (
        "import _imp, importlib; from chainrule.interrupts import uninterrupted\n"
        "_imp.acquire_lock()\n"  # what an interrupt within an import may leave
        "uninterrupted(importlib.import_module, 'this')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True)


def test_an_interrupted_start_of_a_thread_raises_the_interrupt():
    class Interrupted(threading.Thread):
        def start(self):
            lock = threading.Lock()
            with lock:
                lock.release()
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start(Interrupted())
    thread = threading.Thread()
    start(thread)
    with pytest.raises(RuntimeError, match="threads can only be started once"):
        start(thread)
