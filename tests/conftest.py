"""Settings of all tests."""

import gc
import os
import pathlib
import signal
from collections.abc import Iterator

import hypothesis
import pytest
from _pytest.runner import runtestprotocol

from helpers.parameters import mark_sampled
from helpers.same_without_peers import Notes, leave_out

# pytest-xdist runs one worker for each core. If each of them also started BLAS threads for each
# core, these would wait for one another: on two cores the tutorials then take 84 s instead of 6.
# It has to be said before NumPy is imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")

# Shells start background jobs with Ctrl-C ignored; tests of interrupts need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# New examples every time for people, who can look into what they find; the same ones in CI, so that
# a change is judged by itself.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI", "").lower() not in ("", "0", "false"):
    hypothesis.settings.load_profile("ci")


# Set by dev.py in CI, which runs the tests twice: see the module.
NOTED, LEFT_OUT = (os.environ.get(f"CHAINRULE_TESTS_{name}") for name in ("NOTED", "LEFT_OUT"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--backend",
        choices=("cpu", "cuda"),
        default="cpu",
        help="where the tests make tensors; without a card a stand-in for CuPy takes its place",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--backend") == "cuda":
        from cupy_stand_in.selection import SELECTED
        from cupy_stand_in.session import stand_in_for_session  # imports chainrule

        config.add_cleanup(stand_in_for_session().close)
        config.pluginmanager.register(OnTheStandIn())
        if config.args_source is config.ArgsSource.TESTPATHS:
            config.args = [str(config.rootpath / path) for path in SELECTED]
    chosen = config.option.verbose > 0 or config.option.durations is not None
    if "PYTEST_XDIST_WORKER" in os.environ and not chosen and not config.option.xmlpath:
        config.pluginmanager.register(FewMessages())
    if NOTED:
        config.pluginmanager.register(Notes(pathlib.Path(NOTED)))


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_sampled(items)
    if config.getoption("--backend") == "cuda":
        from cupy_stand_in.selection import is_left_out

        config.hook.pytest_deselected(items=[item for item in items if is_left_out(item.name)])
        items[:] = [item for item in items if not is_left_out(item.name)]
    if LEFT_OUT:
        config.hook.pytest_deselected(items=leave_out(pathlib.Path(LEFT_OUT), items))


def pytest_collection_finish() -> None:
    """Exempt the tests themselves from garbage collection, which many tests call."""
    gc.collect()
    gc.freeze()


FROZEN_FOR: pathlib.Path | None = None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Exempt, at the first test of a file, what others have left: modules, programs and reports.

    Without this, a collection takes a third of a second after some thousand tests.
    """
    global FROZEN_FOR
    if item.path != FROZEN_FOR:
        FROZEN_FOR = item.path
        gc.collect()
        gc.freeze()


# Compiled calls are compared with eager ones: the first two of each signature, since there are many
# signatures and few later calls.
os.environ.setdefault("CHAINRULE_VERIFY", "1000000")


class OnTheStandIn:
    """A plugin that runs each test on the device: registered for the option `--backend cuda`."""

    @pytest.fixture(autouse=True)
    def _on_the_backend(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        from cupy_stand_in.session import on_device  # imports chainrule

        with on_device(monkeypatch):
            yield


class FewMessages:
    """A plugin of xdist's workers: they report how tests went, not that each was set up and ended.

    A short test takes less time than the five messages that xdist sends of it.
    """

    @pytest.hookimpl(tryfirst=True)  # in place of pytest's own
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        return True


# Hooks, since a fixture for each of the many short tests would take as long as the test.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Switch verification of compiled calls off for tests with the marker `no_verify(reason)`."""
    if item.get_closest_marker("no_verify") is None:
        return (yield)
    before, os.environ["CHAINRULE_VERIFY"] = os.environ["CHAINRULE_VERIFY"], "off"
    try:
        return (yield)
    finally:
        os.environ["CHAINRULE_VERIFY"] = before
