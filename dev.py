#!/usr/bin/env python3
"""Development commands of chainrule. Each one sets itself up.

    python3 dev.py demo  [options]    train on handwritten digits and write pictures
    python3 dev.py test  [options]    run the tests; options go to pytest
    python3 dev.py test  --compare    all tests, compared with PyTorch and JAX, and with LLVM
    python3 dev.py test  --other      a quick part of the tests, in the newest other Python found
    python3 dev.py lint               check style, types and import layers
    python3 dev.py bench [options]    run the benchmarks, compared with other libraries
    python3 dev.py docs  [--fresh]    write the generated pages, build the site in docs/_build/html
    python3 dev.py build              make wheel and sdist in dist/, try them in a new environment

The first run makes .venv beside this file and installs what the command needs; later runs start at
once. Nothing outside .venv is changed. To start again, delete it.
"""

# Standard library only, in the syntax of Python 3.7: an old Python must be able to run this file,
# because the file then looks for a newer one.

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent
OLDEST = (3, 11)
NAMES = ["python3.14", "python3.13", "python3.12", "python3.11", "python3", "python"]
# What `test --compare` requires: peers, LLVM and MPI, and a module of each that must import.
PEERS = {
    "torch==2.13.0": "torch",
    "jax==0.10.2": "jax",
    "llvmlite==0.50.0": "llvmlite",
    "mpich==5.0.2": None,
    "mpi4py==4.1.2": "mpi4py.MPI",  # loads the library of mpich
}
# The test module that is run with an installed wheel.
TRIED_TEST = "tests/autograd/test_reverse.py"
# Left out in the other Python: slow tests, of what hardly depends on the version of Python.
SLOW = [
    "blas",
    "communicator",
    "compat",
    "compiler/codegen",
    "compiler/control_flow",
    "compiler/eager",
    "compiler/ir",
    "compiler/native",
    "compiler/passes",
    "compiler/test_conformance.py",
    "compiler/test_export_sizes.py",
    "compiler/test_export_text.py",
    "compiler/test_expressions.py",
    "compiler/test_public_functions.py",
    "compiler/test_random_programs.py",
    "compiler/test_training_steps.py",
    "compiler/tracing/test_rolled_walk.py",
    "dask_fit",
    "dask_objective",
    "distributions",
    "examples",
    "fft",
    "fuzz",
    "integration",
    "interop",
    "kernels",
    "linalg",
    "nn",
    "numpy_namespace",
    "ops",
    "optim",
    "primitives",
    "scipy_fft",
    "scipy_integrate",
    "scipy_interpolate",
    "scipy_linalg",
    "scipy_ndimage",
    "scipy_optimize",
    "scipy_signal",
    "scipy_spatial",
    "scipy_special",
    "scipy_stats",
    "signal",
    "test_architecture.py",
    "test_demo.py",
    "test_docs.py",
    "test_operation.py",
    "test_plotting.py",
    "test_reference_pages.py",
    "test_typing.py",
    "transforms/test_vmap_rules.py",
    "visualization",
]

# Child processes work in .venv: variables that would make an installer write elsewhere are removed.
REMOVED = {"PYTHONHOME", "PYTHONPATH", "PIP_PREFIX", "PIP_PYTHON", "PIP_ROOT", "PIP_TARGET"}
# Without bytecode files, each of the many processes of the tests compiles all modules anew.
REMOVED.add("PYTHONDONTWRITEBYTECODE")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in REMOVED}
ENVIRONMENT.update(PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1", PIP_USER="0")


def use_venv(name, base_python=None):
    """Let all commands work in the virtual environment of this name."""
    global BASE_PYTHON, VENV, BIN, PYTHON, STAMP
    BASE_PYTHON, VENV = base_python, ROOT / name
    BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
    PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
    STAMP = VENV / "chainrule-stamp.json"
    path = str(BIN) + os.pathsep + os.environ.get("PATH", "")
    ENVIRONMENT.update(VIRTUAL_ENV=str(VENV), PATH=path)


use_venv(".venv")

# pip would compile all that it installs on one core, in half a minute. Python compiles on import,
# and the tests import a third of it.
PIP_INSTALL = ["-m", "pip", "install", "--quiet", "--no-compile"]


class Failure(Exception):
    """An error whose message tells the user what went wrong and how to fix it."""


def main(arguments):
    commands = {
        "demo": demo,
        "test": test,
        "lint": lint,
        "bench": bench,
        "docs": docs,
        "build": build,
    }
    if not arguments or arguments[0] in ("-h", "--help"):
        say(__doc__.strip())
        return 0 if arguments else 2
    name, options = arguments[0], arguments[1:]
    if name not in commands:
        raise Failure(f"There is no command '{name}'. Try one of: {', '.join(commands)}.")
    return commands[name](options)


# ------------------------------------------------------------------------------------ commands


def demo(options):
    set_up("demo")
    return call(PYTHON, "-m", "chainrule", *options)


def test(options):
    compare, other = "--compare" in options, "--other" in options
    options = [option for option in options if option not in ("--compare", "--other")]
    if other:
        use_other_python()
    set_up("test", peers=compare)
    if compare:
        require_peers()
    choice = options
    if not options and not compare:
        choice = ["-m", "not thorough"]
        say("Left out: the tests marked as thorough. `python3 dev.py test --compare` runs them.")
    if other and not options:
        choice += [f"--ignore=tests/{name}" for name in SLOW]
    elif not options:
        say("The tests take five to ten minutes on two cores, and print their progress.")
        once_in_ci(compare)
    code = call(PYTHON, "-m", "pytest", "-n", "auto", "--dist", "worksteal", *choice)
    if options or other:
        say("The examples in docstrings were skipped: they run only without options.")
        return code
    say("\nThe examples in docstrings:")
    examples = call(PYTHON, "-m", "pytest", "--doctest-modules", "src/chainrule")
    none_found = 5
    return code or (0 if examples == none_found else examples)


def once_in_ci(compare):
    """Let CI, which runs the tests without the peers first, run once what is the same with them."""
    folder = ROOT / ".cache" / "tests-without-peers"
    if not in_ci():
        return
    if not compare:
        shutil.rmtree(str(folder), ignore_errors=True)
        ENVIRONMENT["CHAINRULE_TESTS_NOTED"] = str(folder)
    elif folder.is_dir():
        say("Left out, in CI: the tests that have passed without the peers and don't use them.")
        ENVIRONMENT["CHAINRULE_TESTS_LEFT_OUT"] = str(folder)


def in_ci():
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def lint(options):
    if options:
        raise Failure("lint takes no options. Try: python3 dev.py lint")
    set_up("lint")
    checks = {
        "ruff check": [PYTHON, "-m", "ruff", "check"],
        "ruff format": [PYTHON, "-m", "ruff", "format", "--check"],
        "stubs": [PYTHON, "tools/stubs.py", "--check"],
        "mypy": [PYTHON, "-m", "mypy"],
        "pyright": [PYTHON, "-m", "basedpyright", "--pythonpath", PYTHON],
        "lint-imports": [BIN / "lint-imports", "--no-logo"],
    }
    failed = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = pool.map(lambda command: run(command, stdout=subprocess.PIPE), checks.values())
        for name, (code, output) in zip(checks, runs):
            say(f"\n{name}:\n{output.rstrip()}")
            if code != 0:
                failed.append(name)
    say(f"\nNot clean: {', '.join(failed)}." if failed else "\nAll clean.")
    return 1 if failed else 0


def bench(options):
    set_up("bench", peers=True)
    return call(PYTHON, "benchmarks/run.py", *options)


def docs(options):
    set_up("docs")
    pages = ["numpy_coverage", "special_page", "scipy_page", "design_page", "stubs"]
    pages += ["readme_page", "reference_pages"]
    code = max(call(PYTHON, f"tools/{page}.py") for page in pages)
    return code or call(PYTHON, "docs/build.py", *options)


def build(options):
    if options:
        raise Failure("build takes no options. Try: python3 dev.py build")
    set_up("build")
    folder = ROOT / "dist"
    shutil.rmtree(str(folder), ignore_errors=True)
    code = call(PYTHON, "-m", "build", "--no-isolation", "--outdir", folder)
    if code:
        return code
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    check_contents(wheel, sdist)
    return try_out(wheel, sdist)


def check_contents(wheel, sdist):
    """Fail if the wheel has more than package and plugin, or the sdist less than the repository."""
    with zipfile.ZipFile(str(wheel)) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    own = ("chainrule", "pytest_chainrule.py")
    strays = [top for top in tops if top not in own and not top.endswith(".dist-info")]
    if strays:
        raise Failure(f"{wheel.name} contains {', '.join(strays)} besides the package.")
    with tarfile.open(str(sdist)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = ["CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "dev.py", "pyproject.toml"]
    needed += ["docs/conf.py", "examples/thin_film.py", "src/chainrule/py.typed", TRIED_TEST]
    missing = [name for name in needed if name not in names]
    unwanted = [name for name in names if name.startswith((".venv", "docs/_build", "shared"))]
    if missing or unwanted:
        raise Failure(f"{sdist.name}: missing: {missing}; unwanted: {unwanted[:5]}")


def try_out(wheel, sdist):
    """Install the wheel in a new environment, and run it, and a test of the sdist, there."""
    use_venv(".venv-build")
    make_venv()
    say(f"Trying {wheel.name} in {VENV.name} ...")
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(str(sdist)) as archive:
            archive.extractall(folder)
        (source,) = Path(folder).iterdir()
        shutil.rmtree(str(source / "src"))  # the wheel is what is tried
        quietly(PYTHON, *PIP_INSTALL, wheel, "pytest>=8.2", "hypothesis")
        for command in (["--help"], ["doctor"]):
            quietly(PYTHON, "-m", "chainrule", *command)
        return call(PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", source / TRIED_TEST)


# -------------------------------------------------------------------------------------- set-up


def set_up(*extras, peers=False):
    """Install these extras into .venv, unless it already has them."""
    if in_ci() and extras and BASE_PYTHON is None:  # at once: each installation takes a minute
        extras += ("docs",) if peers else ("lint", "test", "build", "demo")
    stamp = read_stamp()
    if stamp is None:
        make_venv()
        stamp = {"project": None, "extras": [], "peers": []}

    sources = (ROOT / "pyproject.toml").read_bytes() + Path(__file__).read_bytes()
    project = hashlib.sha256(sources).hexdigest()
    extras = sorted(set(stamp["extras"]).union(extras))
    if (stamp["project"], stamp["extras"]) != (project, extras):
        with changing_venv(stamp):
            install_chainrule(extras)
            stamp.update(project=project, extras=extras)

    if peers and stamp["peers"] != list(PEERS):
        with changing_venv(stamp):
            stamp["peers"] = [peer for peer in PEERS if install_peer(peer)]


def read_stamp():
    """Return the record of what .venv contains, or None if there is no working .venv."""
    if not os.path.lexists(str(VENV)):
        return None
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
        if stamp["identity"] == identity():
            return stamp
    except (OSError, ValueError, KeyError, Failure):
        pass
    say(f"{VENV.name} is incomplete, broken, moved or not made by dev.py: making a new one.")
    return None


def identity():
    """Return the path and the Python version that a .venv depends on."""
    found = "importlib.util.find_spec('chainrule')"
    probe = f"import sys, importlib.util; print(sys.version.split()[0]); sys.exit(not {found})"
    return [str(ROOT), quietly(PYTHON, "-I", "-c", probe).splitlines()[-1]]


@contextmanager
def changing_venv(stamp):
    """Remove the stamp while .venv changes, so that an interrupted change leaves no stamp."""
    before = STAMP.read_text(encoding="utf-8") if STAMP.exists() else None
    if before:
        STAMP.unlink()
    try:
        yield
    except Failure:  # installers download everything before they change anything
        if before:
            STAMP.write_text(before, encoding="utf-8")
        raise
    stamp["identity"] = identity()
    STAMP.write_text(json.dumps(stamp, indent=2), encoding="utf-8")


def make_venv():
    """Make a .venv that contains only pip."""
    python = find_python()
    say(f"Making {VENV.name} with {python} ...")
    remove_venv()
    empty = [python, "-m", "venv", "--clear", "--without-pip", VENV]
    fill = ["--python", PYTHON, "install", "--quiet", "pip"]
    try:
        first_that_works(
            [["uv", "venv", "--quiet", "--seed", "--python", python, VENV]],
            [[python, "-m", "venv", "--clear", VENV]],
            [empty, [python, "-m", "pip", *fill]],
            [empty, ["pip3", *fill]],
            [empty, ["pip", *fill]],
        )
    except Failure as failure:
        raise Failure(
            f"{failure}\n\n{VENV.name} could not be made with {python}. Install its venv module "
            "(Debian, Ubuntu: apt install python3-venv) or uv, then run this again."
        ) from None


def remove_venv():
    try:
        if VENV.is_symlink() or VENV.is_file():
            VENV.unlink()
        elif VENV.exists():
            shutil.rmtree(str(VENV))
    except OSError as error:
        raise Failure(
            f"The old {VENV.name} cannot be removed: {error}. Remove it by hand."
        ) from None


def use_other_python():
    """Let all commands work in an environment of the newest Python that .venv does not have."""
    set_up()
    usual = tuple(map(int, identity()[1].split(".")[:2]))
    others = [found for found in pythons([]) if found[0] != usual]
    if not others:
        raise Failure(
            f"test --other: no Python from {OLDEST[0]}.{OLDEST[1]} on but {usual[0]}.{usual[1]} "
            "was found. Install one, for example by `uv python install`, then run this again."
        )
    (major, minor), python = max(others)
    say(f"The tests run in Python {major}.{minor}: {python}")
    use_venv(f".venv-{major}.{minor}", python)


def find_python():
    """Return the Python to make the environment with: by default the first that is new enough."""
    if BASE_PYTHON:
        return BASE_PYTHON
    refused = []
    for _, python in pythons(refused):
        return python
    found = "\n    ".join(dict.fromkeys(refused))
    raise Failure(
        f"chainrule needs Python {OLDEST[0]}.{OLDEST[1]} or newer; found only:\n    {found}\n"
        "Install one (from python.org, with your system's package manager, or by `uv python "
        "install`), then run this again."
    )


def pythons(refused):
    """Yield the version and path of each Python that is new enough; append others to `refused`.

    Each candidate is run, since a shim can exist and fail.
    """
    base = "getattr(sys, '_base_executable', sys.executable)"  # the one below a virtual environment
    probe = f"import sys; print(*sys.version_info[:2]); print({base})"
    folders = os.environ.get("PATH", "").split(os.pathsep)
    on_path = (shutil.which(name, path=folder) for name in NAMES for folder in folders)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for candidate in [sys.executable, *filter(None, on_path), *pyenv.glob("3.*/bin/python3")]:
        try:
            version, path = quietly(candidate, "-I", "-c", probe).splitlines()[-2:]
        except (Failure, ValueError):
            refused.append(f"{candidate} (does not run)")
            continue
        number = tuple(map(int, version.split()))
        if number >= OLDEST:
            yield number, path if os.path.exists(path) else str(candidate)
        else:
            refused.append(f"{candidate} ({version.replace(' ', '.')})")


def install_chainrule(extras):
    target = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)
    say(f"Installing the requirements of {', '.join(extras) or 'chainrule'} into {VENV.name} ...")
    start = time.monotonic()
    try:
        first_that_works(
            [["uv", "pip", "install", "--quiet", "--python", PYTHON, "--editable", target]],
            [[PYTHON, *PIP_INSTALL, "--editable", target]],
        )
    except Failure as failure:
        raise Failure(
            f"{failure}\n\nThe installation failed. Is there a network, and space on the disk? "
            "Then run this again."
        ) from None
    say(f"... ready in {time.monotonic() - start:.0f} s.")


def install_peer(requirement):
    """Install a library to compare with, or report why not.

    This uses pip even where uv exists, because pip's settings may name a package index.
    """
    say(f"Installing {requirement} to compare with ...")
    try:
        quietly(PYTHON, *PIP_INSTALL, requirement)
    except Failure as failure:
        say(f"{failure}\nGoing on without {requirement}: comparisons with it will be skipped.")
        return False
    return True


def require_peers():
    """Fail if a library to compare with cannot be imported: the tests would skip it silently."""
    missing = [name for name in filter(None, PEERS.values()) if not imports(name)]
    if missing:
        raise Failure(
            f"test --compare: {', '.join(missing)} cannot be imported. See above why it could not "
            "be installed, or run `python3 dev.py test`, which skips comparisons."
        )


def imports(name):
    try:
        quietly(PYTHON, "-c", f"import {name}")
    except Failure as failure:
        say(str(failure))
        return False
    return True


# ----------------------------------------------------------------------------------- processes


def first_that_works(*alternatives):
    """Run the commands of each alternative in turn, until all commands of one succeed."""
    reasons = []
    for commands in alternatives:
        if not all(shutil.which(str(command[0])) for command in commands):
            continue
        try:
            for command in commands:
                quietly(*command)
            return
        except Failure as failure:
            reasons.append(str(failure))
    raise Failure("\n".join(reasons))


def quietly(*command):
    """Run a command and return its output; a Failure has the last lines of it."""
    code, output = run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    if code != 0:
        shown = " ".join(map(str, command))
        last = "\n".join("    " + line for line in output.strip().splitlines()[-12:])
        raise Failure(f"$ {shown}\n{last}")
    return output.strip()


def call(*command):
    """Run a command at the terminal and return its exit code."""
    code, trouble = run(command)
    if trouble:
        say(trouble)
    return code if code >= 0 else 128 - code  # as shells report a signal


def run(command, **streams):
    if streams:
        streams.update(stderr=subprocess.STDOUT, universal_newlines=True, errors="replace")
    try:
        process = subprocess.Popen(
            [str(part) for part in command], cwd=str(ROOT), env=ENVIRONMENT, **streams
        )
    except OSError as error:
        return 127, str(error)
    try:
        output, _ = process.communicate()
    except KeyboardInterrupt:  # the child received it as well: let it finish
        try:
            process.communicate()
        except KeyboardInterrupt:
            process.kill()
        raise
    return process.returncode, output


def say(text):
    print(text, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"dev.py: {failure}")
    except KeyboardInterrupt:
        say("\nInterrupted.")
        sys.exit(130)
