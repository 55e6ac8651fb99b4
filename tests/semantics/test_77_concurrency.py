"""SEMANTICS 77: threads, forked processes, interrupts."""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

import chainrule as cr
from helpers.processes import run_script
from helpers.tensors import leaf, memory

# --- threads --------------------------------------------------------------------------------------


def together(function, count=8):
    """Run ``function(i)`` in `count` threads that start at once; return the results."""
    start = threading.Barrier(count)

    def work(i):
        start.wait(30)
        return function(i)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


@pytest.fixture
def _eager_switching():
    """Let threads take turns as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_eager_switching")
@pytest.mark.parametrize("size", [1, 1000])
def test_s77_eight_threads_onto_one_leaf_lose_nothing(size):
    x = cr.ones(size, dtype=cr.float64, requires_grad=True)

    def work(i):
        for _ in range(200):
            (x * 2.0).sum().backward()

    together(work)
    assert x.grad.tolist() == [8 * 200 * 2] * size


@pytest.mark.usefixtures("_eager_switching")
def test_s77_the_first_gradients_do_not_race():
    for _ in range(50):
        x = leaf([0.0], cr.float64)
        together(lambda i, x=x: (x * float(i)).backward())
        assert x.grad.tolist() == [sum(range(8))]


@pytest.mark.usefixtures("_eager_switching")
def test_s77_under_create_graph_neither():
    x = leaf([1.0], cr.float64)

    def work(i):
        for _ in range(50):
            (x * x).backward(create_graph=True)

    together(work)
    assert x.grad.tolist() == [8 * 50 * 2]
    x.grad = None


@pytest.mark.usefixtures("_eager_switching")
def test_s77_one_graph_walked_by_many():
    x = leaf([1.0, 2.0], cr.float64)
    h = (x * x).exp()
    h.retain_grad()
    y = h.sum()
    y.backward(retain_graph=True)
    once, once_h = memory(x.grad).copy(), memory(h.grad).copy()

    def work(i):
        for _ in range(50):
            y.backward(retain_graph=True)

    together(work)
    assert x.grad.tolist() == pytest.approx((401 * once).tolist(), rel=1e-12)
    assert h.grad.tolist() == pytest.approx((401 * once_h).tolist(), rel=1e-12)


@pytest.mark.usefixtures("_eager_switching")
def test_s77_autograd_grad_in_threads_is_each_threads_own():
    x = leaf([3.0], cr.float64)

    def work(i):
        return [cr.autograd_grad(x * x * float(i), x)[0].item() for _ in range(50)]

    assert together(work) == [[6.0 * i] * 50 for i in range(8)]
    assert x.grad is None


@pytest.mark.usefixtures("_eager_switching")
def test_s77_custom_functions_hooks_and_views_in_threads():
    @cr.autograd_function
    def square(ctx, a):
        ctx.save_for_backward(a=a)
        return a * a

    @square.backward
    def _(ctx, g):
        return 2 * g * ctx.saved_variables.a

    x, calls = leaf([[1.0, 2.0]], cr.float64), []
    x.register_hook(lambda g: calls.append(1))

    def work(i):
        for _ in range(30):
            y = square(x * 1)
            y.T[0].mul_(2.0)
            y.sum().backward()

    together(work)
    assert x.grad.tolist() == [[8 * 30 * 4, 8 * 30 * 4]]
    assert len(calls) == 240


@pytest.mark.usefixtures("_eager_switching")
def test_s77_versions_count_every_write():
    x = cr.zeros(1)

    def work(i):
        view = x[:]
        for _ in range(100):
            view.zero_()

    before = x._version
    together(work)
    assert x._version == before + 800


def test_s77_an_error_in_one_thread_is_that_threads_alone():
    x = leaf([1.0], cr.float64)

    def work(i):
        y = x.exp() if i % 2 else x * 1.0
        y.backward()
        if i % 2:
            with pytest.raises(RuntimeError, match="a second time"):
                y.backward()
        return cr.is_grad_enabled()

    assert together(work) == [True] * 8


def test_s77_backward_inside_a_thread_started_by_a_hook():
    x, w = leaf([1.0]), leaf([1.0])

    def hook(g):
        thread = threading.Thread(target=lambda: (w * 3).backward())
        thread.start()
        thread.join(30)
        assert not thread.is_alive()

    x.register_hook(hook)
    (x * 2).backward()
    assert (x.grad.tolist(), w.grad.tolist()) == ([2], [3])


# --- fork -----------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

FORK = """
import os, sys, threading, time, warnings
import chainrule as cr

warnings.simplefilter("ignore")  # later Pythons warn of fork beside threads

def child(check):
    pid = os.fork()
    if pid == 0:
        try:
            check()
            os._exit(0)
        finally:
            os._exit(1)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "hangs"
"""


@needs_fork
def test_s77_backward_works_after_fork():
    source = """
x = cr.tensor([3.0], requires_grad=True)
(x * x).backward()
recorded = x * x

def check():
    (x * x).backward()
    recorded.backward()
    assert x.grad.tolist() == [18.0], x.grad
    with cr.no_grad():
        x.sub_(1)
    assert x.tolist() == [2.0]

print(child(check), child(check))
assert x.grad.tolist() == [6.0]
recorded.backward()
assert x.grad.tolist() == [12.0]
"""
    assert run_script(FORK + source).split() == ["0", "0"]


@needs_fork
def test_s77_also_when_other_threads_were_in_a_pass():
    source = """
sys.setswitchinterval(1e-5)
x = cr.zeros(200_000, requires_grad=True)
stop = threading.Event()

def busy():
    w = cr.zeros(200_000)
    while not stop.is_set():
        x.backward(w)
        w.add_(1)

threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()

def check():
    y = cr.tensor([3.0], requires_grad=True)
    (y * y).backward()
    (y * y).backward()
    with cr.no_grad():
        y.sub_(1)

result = None
for _ in range(30):
    result = child(check)
    if result:
        break
stop.set()
print(result)
"""
    assert run_script(FORK + source).strip() == "0"


@needs_fork
def test_s77_modes_are_inherited_by_a_forked_process():
    source = """
def check():
    assert not cr.is_grad_enabled()
    with cr.enable_grad():
        assert cr.is_grad_enabled()

with cr.no_grad():
    print(child(check))
"""
    assert run_script(FORK + source).strip() == "0"


# --- interrupts -----------------------------------------------------------------------------------


def long_chain(x, n):
    y = x
    for _ in range(n):
        y = y * 1.0
    return y


@contextlib.contextmanager
def interrupting(node):
    """Send this process a SIGINT from another thread, soon after a pass has reached `node`."""
    reached = threading.Event()

    def send():
        if reached.wait(30):
            os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    handle = node.register_prehook(lambda _: reached.set())
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        reached.set()
        sender.join()
        signal.signal(signal.SIGINT, before)
        handle.remove()


@pytest.mark.parametrize("create_graph", [False, True])
def test_s77_sigint_in_the_middle_of_a_long_pass(create_graph):
    x = leaf([3.0])
    first = x * 2.0
    middle = long_chain(first, 100_000)
    y = long_chain(middle, 100_000 if not create_graph else 1000)
    with pytest.raises(KeyboardInterrupt), interrupting(middle.grad_fn):
        y.backward(retain_graph=True, create_graph=create_graph)
    assert cr.is_grad_enabled()
    assert x.grad is None
    y.backward()
    assert x.grad.tolist() == [2]
    (x * x).backward()
    assert x.grad.tolist() == [8]


def test_s77_sigint_in_a_pass_that_frees():
    x = leaf([3.0])
    middle = long_chain(x, 100_000)
    y = long_chain(middle, 100_000)
    with pytest.raises(KeyboardInterrupt), interrupting(middle.grad_fn):
        y.backward()
    assert x.grad is None
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()
    (x * x).backward()
    assert x.grad.tolist() == [6]


class Injector:
    """Raises KeyboardInterrupt after the n-th call that the engine makes returns.

    That is where the interpreter looks for signals: after calls, not between any two lines.
    """

    def __init__(self, n):
        self.left = n
        self.where = None

    def __call__(self, frame, event, argument):
        filename = frame.f_code.co_filename
        if event not in ("return", "c_return") or "chainrule" not in filename:
            return
        if os.path.basename(filename) == "modes.py":
            return  # a block's own __enter__ and __exit__: no context manager in Python survives it
        self.left -= 1
        if self.left == 0:
            sys.setprofile(None)
            self.where = f"{os.path.basename(filename)}:{frame.f_lineno} after {argument}"
            raise KeyboardInterrupt

    def run(self, function):
        sys.setprofile(self)
        try:
            with contextlib.suppress(KeyboardInterrupt):
                function()
        finally:
            sys.setprofile(None)
        return self.where


@cr.autograd_function
def squared(ctx, x):
    ctx.save_for_backward(x=x)
    return x * x


@squared.backward
def _(ctx, g):
    return 2 * g * ctx.saved_variables.x


def interrupt_everywhere(scenario):
    """Interrupt what `scenario()` returns after each of its calls; check the state each time."""
    for n in range(1, 2000):
        function, check = scenario()
        where = Injector(n).run(function)
        assert cr.is_grad_enabled(), where
        assert not cr.is_anomaly_enabled(), where
        assert cr.autograd_grad((z := leaf([3.0])) * z, z)[0].tolist() == [6], where
        check()
        if where is None:
            return n
    raise AssertionError("the scenario never ends")


@pytest.fixture
def _modes_reset():
    yield
    cr.set_grad_enabled(True)
    cr.set_detect_anomaly(False)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_modes_reset")
@pytest.mark.parametrize(
    "settings",
    [{}, {"create_graph": True}, {"inputs": True}],
    ids=["plain", "create_graph", "inputs"],
)
def test_s77_interrupted_after_any_call_of_a_pass(settings):
    def scenario():
        x = leaf([3.0])
        y = squared(x) + x * x + x.unbind()[0]
        y.register_hook(lambda g: None)
        y.retain_grad()
        options = {**settings, "inputs": [x, y]} if "inputs" in settings else settings

        def check():
            x.grad = y.grad = None
            y.backward(retain_graph=True)
            assert x.grad.tolist() == [13]

        return lambda: y.backward(retain_graph=True, **options), check

    assert interrupt_everywhere(scenario) > 50


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_modes_reset")
def test_s77_interrupted_after_any_call_of_a_forward():
    def scenario():
        x = leaf([3.0, 4.0])

        def forward():
            y = squared(x)
            z = (y[0] * y + cr.where(y > 1, y, x)).sum()
            return z / y.norm()

        def check():
            x.grad = None
            squared(x).sum().backward()
            assert x.grad.tolist() == [6, 8]

        return forward, check

    assert interrupt_everywhere(scenario) > 30


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_modes_reset")
def test_s77_interrupted_after_any_call_of_packing():
    def scenario():
        x = leaf([3.0])

        def forward():
            with cr.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
                return squared(x * x)

        def check():
            pass

        return forward, check

    assert interrupt_everywhere(scenario) > 10


def test_s77_an_interrupt_names_where_the_pass_was():
    x = leaf([3.0])
    y = x.exp()

    def hook(g):
        raise KeyboardInterrupt

    handle = y.register_hook(hook)
    with pytest.raises(KeyboardInterrupt) as caught:
        y.backward()
    assert "ExpBackward0" in "".join(caught.value.__notes__)
    handle.remove()
    y.backward()
    assert x.grad.tolist() == y.tolist()


NESTED = """
import faulthandler, sys
import chainrule as cr

faulthandler.dump_traceback_later(10, exit=True)  # a deadlock is not waited for

def nested():
    with cr.enable_grad():
        z = cr.tensor([3.0], requires_grad=True)
        y = z * z
    y.retain_grad()
    y.backward()
    with cr.no_grad():
        z.sub_(z.grad)
    assert z.tolist() == [-3.0]

def after(n):
    left = [n]

    def profile(frame, event, argument):
        if event in ("return", "c_return") and "chainrule" in frame.f_code.co_filename:
            left[0] -= 1
            if left[0] == 0:
                sys.setprofile(None)
                nested()

    x = cr.tensor([3.0], requires_grad=True)
    y = x * x
    y.retain_grad()
    y.backward(retain_graph=True)
    sys.setprofile(profile)
    try:
        y.backward()
    finally:
        sys.setprofile(None)
    assert x.grad.tolist() == [12.0]
    assert y.grad.tolist() == [2.0]
    return left[0] <= 0

n = 1
while after(n):
    n += 1
print(n)
"""


def test_s77_a_pass_within_any_call_of_a_pass():
    # As a signal handler, or a __del__ that the garbage collector runs, may start one.
    assert int(run_script(NESTED)) > 30


def test_s77_a_pass_may_start_where_no_python_code_is_below():
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    losses = [(x * x).sum() for _ in range(2)]
    losses[0].backward()
    done = threading.Event()
    weakref.finalize(losses[1].grad_fn, done.set)
    # A thread of the low-level module calls the function itself, with no frame around it.
    _thread.start_new_thread(cr.autograd_backward, (losses.pop(),))
    assert done.wait(10)
    assert x.grad.tolist() == [4, 8]
