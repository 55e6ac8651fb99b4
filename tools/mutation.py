"""Mutation testing: break the source in small ways, and count what the tests notice.

    python3.12 tools/mutation.py map                          record which tests run which lines
    python3.12 tools/mutation.py run [--count N] [--seed N]   break the source N times
    python3.12 tools/mutation.py run --only FILE:LINE ...     break it on these lines, in every way

Needs the packages of the extra `test`, and Python 3.12 or newer: `sys.monitoring` records the lines
at little cost. Each mutant differs in one place from a copy of the source: another operator, a
constant changed by one, a condition negated, a statement left out. The tests that run its line run
on it, those of its own folder first, until one fails that passes without the mutant. Mutants are
printed, and written to `.cache/mutation/report.json`; `--skip N` goes on after the first N.

On lines that never run in Python, because they become machine code, the tests of the file run.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "chainrule"
CACHE = ROOT / ".cache" / "mutation"
PACKAGES = ("autograd", "compiler", "primitives")
MAX_SECONDS = 120
"""Time, in seconds, that the tests of one mutant may take by the times in the map."""

# --- the map: which tests run which lines ---------------------------------------------------------


class LineRecorder:
    """A pytest plugin that records the lines of chainrule that each test runs, and its time."""

    def __init__(self) -> None:
        self.tests: list[tuple[str, float]] = []
        self.lines: defaultdict[str, list[int]] = defaultdict(list)  # test numbers by file:line
        self._seen: set[tuple[str, int]] = set()
        monitoring = sys.monitoring
        self._tool, self._event = monitoring.COVERAGE_ID, monitoring.events.LINE
        monitoring.use_tool_id(self._tool, "mutation")
        monitoring.register_callback(self._tool, self._event, self._line)
        monitoring.set_events(self._tool, self._event)

    def _line(self, code: Any, line: int) -> Any:
        if code.co_filename.startswith(f"{SOURCES}{os.sep}"):
            self._seen.add((code.co_filename, line))
        return sys.monitoring.DISABLE

    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> None:
        self._seen.clear()
        sys.monitoring.restart_events()
        self._begin = time.process_time()

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        number = len(self.tests)
        self.tests.append((nodeid, round(time.process_time() - self._begin, 3)))
        for file, line in list(self._seen):  # other threads may add to it
            self.lines[f"{Path(file).relative_to(SOURCES).as_posix()}:{line}"].append(number)

    def pytest_sessionfinish(self) -> None:
        CACHE.mkdir(parents=True, exist_ok=True)
        found = {"tests": self.tests, "lines": self.lines}
        (CACHE / "map.json").write_text(json.dumps(found), encoding="utf-8")


def write_map(options: list[str]) -> int:
    import pytest

    # These send signals, which arrive elsewhere where lines are recorded.
    others = ["--ignore=tests/integration/test_interrupts.py"]
    return int(pytest.main(["-q", "-p", "no:xdist", *others, *options], plugins=[LineRecorder()]))


# --- mutants --------------------------------------------------------------------------------------


class Mutant(NamedTuple):
    file: str
    line: int
    change: str
    source: str


SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.USub: ast.UAdd,
}


def mutations(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield replacements of one node, with a description."""
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.BoolOp):
        swapped = SWAPS.get(type(node.op))
        if swapped is not None:
            yield _replaced(node, op=swapped())
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"{ast.unparse(node)} -> {ast.unparse(node.operand)}", node.operand
    if isinstance(node, ast.Compare):
        swapped = SWAPS.get(type(node.ops[0]))
        if swapped is not None:
            yield _replaced(node, ops=[swapped(), *node.ops[1:]])
    if isinstance(node, ast.BoolOp):
        for i in range(len(node.values)):
            rest = [*node.values[:i], *node.values[i + 1 :]]
            yield _replaced(node, values=rest)
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        value = not node.value if isinstance(node.value, bool) else node.value + 1
        yield _replaced(node, value=value)
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        negated = ast.UnaryOp(ast.Not(), node.test)
        changed = copy.copy(node)
        changed.test = negated
        yield f"if {ast.unparse(node.test)} -> if {ast.unparse(negated)}", changed
    if isinstance(node, ast.Return) and ast.unparse(node) not in ("return", "return None"):
        yield _replaced(node, value=ast.Constant(None))
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Raise | ast.Continue):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_text:
            yield f"{ast.unparse(node)[:70]} -> pass", ast.Pass()


def _replaced(node: Any, **fields: Any) -> tuple[str, ast.AST]:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return f"{ast.unparse(node)[:70]} -> {ast.unparse(changed)[:70]}", changed


def places(file: str) -> Iterator[ast.AST]:
    """Yield the nodes of a module that can be changed: those within functions."""
    text = (SOURCES / file).read_text(encoding="utf-8")
    yield from _nodes(ast.parse(text))


def mutants_at(file: str, node: Any) -> Iterator[Mutant]:
    """Yield every mutant of one node that compiles."""
    lines = (SOURCES / file).read_text(encoding="utf-8").splitlines(keepends=True)
    for change, replacement in mutations(node):
        source = _with_replacement(lines, node, ast.unparse(replacement))
        try:
            compile(source, file, "exec")
        except SyntaxError:
            continue
        yield Mutant(file, node.lineno, change, source)


def _nodes(tree: ast.Module) -> Iterator[Any]:
    """Yield the nodes within functions, except in annotations and f-strings."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

    def walk(node: ast.AST, inside: bool) -> Iterator[Any]:
        if isinstance(node, ast.JoinedStr | ast.arguments) or _is_typing(node):
            return
        if inside and hasattr(node, "lineno"):
            yield node
        inside = inside or isinstance(node, functions)
        if isinstance(node, ast.keyword) and node.arg in ("strict", "stacklevel"):
            return  # changes no result
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from walk(child, inside)

    return walk(tree, False)


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _with_replacement(lines: list[str], node: Any, new: str) -> str:
    """Return the source with other text in the place of a node."""
    first, last = node.lineno - 1, node.end_lineno - 1
    before = lines[first].encode()[: node.col_offset].decode()
    after = lines[last].encode()[node.end_col_offset :].decode()
    if isinstance(node, ast.stmt):
        new = new.replace("\n", "\n" + " " * node.col_offset)
    elif isinstance(node, ast.expr):
        new = f"({new})"
    return "".join([*lines[:first], before + new + after, *lines[last + 1 :]])


# --- the run --------------------------------------------------------------------------------------


def run(count: int, seed: int, skip: int, only: list[str]) -> int:
    """Break the source and print what no test notices; return 1 if more than 1 in 20 survive."""
    known = json.loads((CACHE / "map.json").read_text(encoding="utf-8"))
    tests, lines = known["tests"], known["lines"]
    found = [
        (path.relative_to(SOURCES).as_posix(), node)
        for package in PACKAGES
        for path in sorted((SOURCES / package).rglob("*.py"))
        for node in places(path.relative_to(SOURCES).as_posix())
    ]
    chosen = _chosen(found, count, random.Random(seed), only)
    covered = [m for m in chosen if f"{m.file}:{m.line}" in lines]
    print(f"{len(chosen)} mutants, {len(covered)} of them on lines that tests run in Python.")
    suite = Suite(CACHE / "workplace")
    report = []
    for number, mutant in enumerate(chosen):
        if number < skip:
            continue
        numbers = lines.get(f"{mutant.file}:{mutant.line}") or _tests_of(mutant.file, tests, lines)
        selected = _within_limit(sorted((tests[n] for n in numbers), key=lambda test: test[1]))
        result = suite.run(mutant, selected)
        row = {"result": result, "tests": len(selected)}
        report.append({"number": number + 1, **mutant._asdict(), "source": "", **row})
        state = "SURVIVED" if result == "survived" else "killed"
        print(f"{number + 1:4} {state:8} {mutant.file}:{mutant.line}: {mutant.change}", flush=True)
        print(f"{'':13} {result}", flush=True)
        (CACHE / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    survivors = sum(row["result"] == "survived" for row in report)
    print(f"{len(report) - survivors} of {len(report)} mutants were killed.")
    return int(survivors > len(report) / 20)


def _tests_of(file: str, tests: list[tuple[str, float]], lines: dict[str, list[int]]) -> list[int]:
    """Return the tests that run any function of a file, and those of the module's name.

    For lines that never run in Python: those of functions whose source becomes machine code.
    """
    found = {n for place, numbers in lines.items() if place.startswith(f"{file}:") for n in numbers}
    path = Path(file)
    named = (f"/test_{path.stem}.py::", f"/test_{path.parent.name}.py::")
    found |= {n for n, (name, _) in enumerate(tests) if any(text in name for text in named)}
    return sorted(found)


def _chosen(
    found: list[tuple[str, Any]], count: int, generator: random.Random, only: list[str]
) -> list[Mutant]:
    """Return a mutant of each of `count` random nodes, or every mutant of some lines."""
    if only:
        return [m for f, node in found if f"{f}:{node.lineno}" in only for m in mutants_at(f, node)]
    generator.shuffle(found)
    chosen: list[Mutant] = []
    for file, node in found:
        if len(chosen) == count:
            break
        possible = list(mutants_at(file, node))
        if possible:
            chosen.append(generator.choice(possible))
    return chosen


def _within_limit(selected: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Return the first tests that together take at most `MAX_SECONDS`."""
    total, found = 0.0, []
    for name, seconds in selected:
        total += seconds
        if total > MAX_SECONDS and found:
            break
        found.append((name, seconds))
    return found


class Suite:
    """A copy of the repository, whose tests are run with one broken module."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        ignored = shutil.ignore_patterns(".*", "__pycache__", "chainrule-demo")
        shutil.copytree(ROOT, folder, ignore=ignored)
        self.folder = folder
        self.sound: set[str] = set()  # tests that pass with the source as it is
        self.unsound: set[str] = set()  # tests that don't

    def run(self, mutant: Mutant, selected: list[tuple[str, float]]) -> str:
        """Return how the tests noticed a mutant, or "survived".

        What fails counts only if it passes with the source as it is.
        """
        for part in _nearest_first(mutant.file, selected):
            while remaining := [test for test in part if test[0] not in self.unsound]:
                with self._broken(mutant):
                    result, failed = self._pytest(remaining)
                if result == "survived":
                    break
                suspects = [test for test in remaining if test[0] in failed] or remaining
                if result == "hung" or self._are_sound(suspects):
                    return " ".join([result, *failed])
        return "survived"

    @contextlib.contextmanager
    def _broken(self, mutant: Mutant) -> Iterator[None]:
        target = self.folder / "src" / "chainrule" / mutant.file
        before = target.read_text(encoding="utf-8")
        target.write_text(mutant.source, encoding="utf-8")
        try:
            yield
        finally:
            target.write_text(before, encoding="utf-8")

    def _are_sound(self, suspects: list[tuple[str, float]]) -> bool:
        """Whether tests pass with the source as it is; note those that do and those that don't."""
        if all(name in self.sound for name, _ in suspects):
            return True
        result, failed = self._pytest(suspects)
        if result == "survived":
            self.sound.update(name for name, _ in suspects)
            return True
        print(f"Without a mutant: {result} {failed}", flush=True)
        self.unsound.update(failed or (name for name, _ in suspects))
        return False

    def _pytest(self, selected: list[tuple[str, float]]) -> tuple[str, list[str]]:
        """Return how tests went, and the names of those that failed."""
        listed = self.folder / "selected.txt"
        listed.write_text("\n".join(name for name, _ in selected), encoding="utf-8")
        notes = self.folder / ".pytest_notes"
        shutil.rmtree(notes, ignore_errors=True)
        longest = 60 + 10 * max(seconds for _, seconds in selected)
        options = ["-x", "-q", "--no-header", "-p", "no:xdist", "-o", f"cache_dir={notes}"]
        options += ["-o", f"faulthandler_timeout={longest}"]
        options += ["-o", "faulthandler_exit_on_timeout=true"]
        command = [sys.executable, "-m", "pytest", *options, f"@{listed}"]
        environment = os.environ | {
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CHAINRULE_CACHE": "",  # machine code of mutants must not be found by others
            "CI": "1",
        }
        limit = 60 + 10 * sum(seconds for _, seconds in selected)
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return "hung", []
        if done.returncode == 0:
            return "survived", []
        if b"Timeout (" in done.stderr:
            return "hung", []
        found = notes / "v" / "cache" / "lastfailed"
        failed = sorted(json.loads(found.read_text(encoding="utf-8"))) if found.exists() else []
        # Not tests that failed: modules that could not be imported, no such test, a crash.
        state = "failed" if done.returncode == 1 else f"ended with status {done.returncode}"
        return state, failed


def _nearest_first(
    file: str, selected: list[tuple[str, float]]
) -> Iterator[list[tuple[str, float]]]:
    """Yield the tests of the folder that belongs to a module, and all others after them."""
    folder = f"tests/{Path(file).parent.as_posix()}/"
    near = [test for test in selected if test[0].startswith(folder)]
    yield near
    yield [test for test in selected if not test[0].startswith(folder)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("map")
    runs = commands.add_parser("run")
    runs.add_argument("--count", type=int, default=300)
    runs.add_argument("--seed", type=int, default=0)
    runs.add_argument("--skip", type=int, default=0)
    runs.add_argument("--only", nargs="+", default=[])
    given, options = parser.parse_known_args()
    if given.command == "map":
        return write_map(options)
    return run(given.count, given.seed, given.skip, given.only)


if __name__ == "__main__":
    sys.exit(main())
