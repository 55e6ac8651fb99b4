#!/usr/bin/env python3
"""The one entry for people: what is done to chainrule, each command with its own set-up.

    python3 dev.py demo  [options]    train on handwritten digits, write the pictures
    python3 dev.py test  [options]    the tests; options go to pytest
    python3 dev.py test  --compare    the same, with PyTorch, JAX and Numba where they install
    python3 dev.py lint               style, types, layers
    python3 dev.py bench [options]    the benchmarks, beside the peers
    python3 dev.py docs               the pages

The first run makes .venv beside this file, with what the command needs; later ones start at once.
Nothing outside .venv is changed. To begin afresh, delete it.
"""

# Standard library only, in the syntax of Python 3.7: an old Python has to be able to start this
# file, for it to find a newer one.

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "chainrule-stamp.json"

OLDEST = (3, 11)
NAMES = ["python3.14", "python3.13", "python3.12", "python3.11", "python3", "python"]
# Compared with, or computed by, where they can be installed; never required.
PEERS = ["torch==2.13.0", "jax", "numba"]

# Children work in .venv, whatever the shell is set to: nothing may lead an installer out of it.
ASTRAY = {"PYTHONHOME", "PYTHONPATH", "PIP_PREFIX", "PIP_PYTHON", "PIP_ROOT", "PIP_TARGET"}
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ASTRAY}
ENVIRONMENT.update(
    VIRTUAL_ENV=str(VENV),
    PATH=str(BIN) + os.pathsep + os.environ.get("PATH", ""),
    PIP_DISABLE_PIP_VERSION_CHECK="1",
    PIP_NO_INPUT="1",
    PIP_USER="0",
)


class Failure(Exception):
    """What went wrong and what mends it, in words for the person at the terminal."""


def main(arguments):
    commands = {"demo": demo, "test": test, "lint": lint, "bench": bench, "docs": docs}
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
    set_up("test", peers="--compare" in options)
    options = [option for option in options if option != "--compare"]
    code = call(PYTHON, "-m", "pytest", "-n", "auto", *options)
    if options:
        say("The examples in docstrings were left out: they run when pytest is given no options.")
        return code
    say("\nThe examples in docstrings:")
    # Two modules have no example, and import Numba.
    modules = ("gemm_microkernel", "threads/atomics")
    left_out = [f"--ignore=src/chainrule/compiler/native/{name}.py" for name in modules]
    examples = call(PYTHON, "-m", "pytest", "--doctest-modules", "src/chainrule", *left_out)
    none_found = 5
    return code or (0 if examples == none_found else examples)


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
    for name, command in checks.items():
        say(f"\n{name}:")
        if call(*command) != 0:
            failed.append(name)
    say(f"\nNot clean: {', '.join(failed)}." if failed else "\nAll clean.")
    return 1 if failed else 0


def bench(options):
    set_up("bench", peers=True)
    return call(PYTHON, "benchmarks/run.py", *options)


def docs(options):
    set_up()
    code = call(PYTHON, "tools/numpy_coverage.py")
    if not (ROOT / "docs" / "build.py").exists():
        say("Nothing else to build: the pages are plain Markdown, in docs/.")
        return code
    return code or call(PYTHON, "docs/build.py", *options)


# -------------------------------------------------------------------------------------- set-up


def set_up(*extras, peers=False):
    """Bring .venv to where a command that needs these extras can run; at once if it is there."""
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

    if peers and stamp["peers"] != PEERS:
        with changing_venv(stamp):
            stamp["peers"] = [peer for peer in PEERS if install_peer(peer)]


def read_stamp():
    """Return what .venv holds, or None where there is no .venv that works."""
    if not os.path.lexists(str(VENV)):
        return None
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
        if stamp["identity"] == identity():
            return stamp
    except (OSError, ValueError, KeyError, Failure):
        pass
    say("The .venv here is half-made, broken, moved or not from dev.py: making it anew.")
    return None


def identity():
    """Return what must stay the same under a .venv that works: its place and its Python."""
    found = "importlib.util.find_spec('chainrule')"
    probe = f"import sys, importlib.util; print(sys.version.split()[0]); sys.exit(not {found})"
    return [str(ROOT), quietly(PYTHON, "-I", "-c", probe).splitlines()[-1]]


@contextmanager
def changing_venv(stamp):
    """Keep the stamp off .venv while it changes, so that an end half-way leaves none behind."""
    before = STAMP.read_text(encoding="utf-8") if STAMP.exists() else None
    if before:
        STAMP.unlink()
    try:
        yield
    except Failure:  # installers fetch everything before they change anything
        if before:
            STAMP.write_text(before, encoding="utf-8")
        raise
    stamp["identity"] = identity()
    STAMP.write_text(json.dumps(stamp, indent=2), encoding="utf-8")


def make_venv():
    """Make a .venv that has pip and nothing else."""
    python = find_python()
    say(f"Making .venv with {python} ...")
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
            f"{failure}\n\n.venv could not be made with {python}. Install its venv module "
            "(Debian, Ubuntu: apt install python3-venv) or uv, then run this again."
        ) from None


def remove_venv():
    try:
        if VENV.is_symlink() or VENV.is_file():
            VENV.unlink()
        elif VENV.exists():
            shutil.rmtree(str(VENV))
    except OSError as error:
        raise Failure(f"The old .venv cannot be removed: {error}. Remove it by hand.") from None


def find_python():
    """Return a Python that is new enough, asking each by running it: a shim can exist and fail."""
    outside = "getattr(sys, '_base_executable', sys.executable)"  # of a venv that it may be in
    probe = f"import sys; print(*sys.version_info[:2]); print({outside})"
    folders = os.environ.get("PATH", "").split(os.pathsep)
    on_path = (shutil.which(name, path=folder) for name in NAMES for folder in folders)
    seen = []
    for candidate in [sys.executable, *filter(None, on_path)]:
        try:
            version, path = quietly(candidate, "-I", "-c", probe).splitlines()[-2:]
        except (Failure, ValueError):
            seen.append(f"{candidate} (does not run)")
            continue
        if tuple(map(int, version.split())) >= OLDEST:
            return path if os.path.exists(path) else candidate
        seen.append(f"{candidate} ({version.replace(' ', '.')})")
    here = "\n    ".join(dict.fromkeys(seen))
    raise Failure(
        f"chainrule needs Python {OLDEST[0]}.{OLDEST[1]} or newer; here are only:\n    {here}\n"
        "Install one (from python.org, as a package of your system, or by `uv python install`), "
        "then run this again."
    )


def install_chainrule(extras):
    target = f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT)
    say(f"Installing what {', '.join(extras) or 'chainrule'} needs into .venv ...")
    start = time.monotonic()
    try:
        first_that_works(
            [["uv", "pip", "install", "--quiet", "--python", PYTHON, "--editable", target]],
            [[PYTHON, "-m", "pip", "install", "--quiet", "--editable", target]],
        )
    except Failure as failure:
        raise Failure(
            f"{failure}\n\nThe installation failed. Is there a network, and room on the disk? "
            "Then run this again."
        ) from None
    say(f"... ready in {time.monotonic() - start:.0f} s.")


def install_peer(requirement):
    """Install a library to compare with, or say why not. By pip: its settings may name a source."""
    say(f"Installing {requirement} to compare with ...")
    try:
        quietly(PYTHON, "-m", "pip", "install", "--quiet", requirement)
    except Failure as failure:
        say(f"{failure}\nGoing on without {requirement}: what compares with it will be skipped.")
        return False
    return True


# ----------------------------------------------------------------------------------- processes


def first_that_works(*ways):
    """Run the commands of the first way whose commands all succeed."""
    reasons = []
    for way in ways:
        if not all(shutil.which(str(command[0])) for command in way):
            continue
        try:
            for command in way:
                quietly(*command)
            return
        except Failure as failure:
            reasons.append(str(failure))
    raise Failure("\n".join(reasons))


def quietly(*command):
    """Run a command and return what it prints; a Failure tells its last words."""
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
    except KeyboardInterrupt:  # the child had it too: let it end in its own way
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
