"""What a function reads: each kind of value, in each place, read in each way, and changed."""

from __future__ import annotations

import argparse
import array
import contextlib
import decimal
import functools
import gc
import importlib
import io
import itertools
import logging
import pickle
import signal
import sys
import threading
import time
import types
from collections import UserList, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.tracing.locations import is_standard


class Kind(NamedTuple):
    """A kind of value: its source, a number that depends on its content, and changes in place."""

    source: str
    number: str  # of v
    changes: tuple[str, ...]  # of v
    other: str  # another value of this kind


KINDS = {
    "float": Kind("2.0", "v", (), "3.0"),
    "type": Kind("2", "float(isinstance(v, int))", (), "2.0"),
    "attribute of a float": Kind(
        "Rate(2.0)",
        "v + getattr(v, 'other', 0.0)",
        ("v.other = 5.0", "v.other = 1.0", "Rate.other = 3.0; del v.other"),
        "Rate(3.0)",
    ),
    "string": Kind("'ab'", "len(v)", (), "'abc'"),
    "list": Kind("[1.0, 2.0]", "v[0] + 3 * v[1]", ("v.reverse()", "v[0] = 7.0"), "[5.0, 6.0]"),
    "long list": Kind("[1.0] * 20", "sum(v)", ("v[13] = 7.0", "v.pop()"), "[2.0] * 20"),
    "rows": Kind(
        "[[1.0, 2.0]] * 3 + [[4.0] * 9]", "sum(map(sum, v))", ("v[3][5] = 1.0",), "[[3.0]]"
    ),
    "dict": Kind(
        "{'a': 2.0, 'b': 5.0}",
        "next(iter(v.values())) + 10 * len(v) + v.get('c', 0)",
        ("v['a'] = 4.0", "v['a'] = v.pop('a')", "v['c'] = 1.0", "del v['a']"),
        "{'a': 3.0}",
    ),
    "long dict": Kind(
        "{i: float(i) for i in range(20)}",
        "v[3] + next(iter(v))",
        ("v[3] = 0.0", "v[0] = v.pop(0)"),
        "{3: 1.0}",
    ),
    "dict of objects": Kind("{object(): 2.0}", "sum(v.values())", ("v[object()] = 3.0",), "{}"),
    "set": Kind("{1.0, 2.0}", "sum(v)", ("v.add(5.0)", "v.discard(1.0)"), "{3.0}"),
    "deque": Kind(
        "collections.deque([1.0, 2.0])",
        "v[0] + 3 * v[1]",
        ("v.rotate()", "v.appendleft(5.0)"),
        "collections.deque([3.0, 3.0])",
    ),
    "bytearray": Kind("bytearray([1, 2])", "v[0] + len(v)", ("v[0] = 9",), "bytearray([5])"),
    "array.array": Kind(
        "array.array('d', [1, 2])", "sum(v)", ("v[0] = 9.0", "v.pop()"), "array.array('d', [7])"
    ),
    "memoryview": Kind(
        "memoryview(bytearray([1, 2]))", "v[0]", ("v[0] = 7",), "memoryview(b'abc')"
    ),
    "mapping proxy": Kind(
        "types.MappingProxyType(under := {'a': 2.0})",
        "v['a']",
        ("under['a'] = 3.0",),
        "types.MappingProxyType({'a': 4.0})",
    ),
    "user dict": Kind(
        "collections.UserDict(a=2.0)", "v['a']", ("v['a'] = 3.0",), "collections.UserDict(a=4.0)"
    ),
    "user list": Kind(
        "collections.UserList([2.0])", "v[0]", ("v[0] = 3.0",), "collections.UserList([4.0])"
    ),
    "chain map": Kind(
        "collections.ChainMap({}, {'a': 2.0})",
        "v['a']",
        ("v.maps[1]['a'] = 3.0", "v['a'] = 5.0"),
        "collections.ChainMap({'a': 4.0})",
    ),
    "ordered dict": Kind(
        "collections.OrderedDict(a=2.0, b=3.0)",
        "next(iter(v.values()))",
        ("v.move_to_end('a')",),
        "collections.OrderedDict(a=4.0)",
    ),
    "default dict": Kind(
        "collections.defaultdict(float, a=2.0)",
        "v['a']",
        ("v['a'] = 3.0",),
        "collections.defaultdict(float)",
    ),
    "exception": Kind("ValueError(2.0)", "v.args[0]", ("v.args = (3.0,)",), "KeyError(4.0)"),
    "future": Kind(
        "asyncio.Future(loop=types.SimpleNamespace(get_debug=bool))",
        "v.result() if v.done() else 1.0",
        ("v.set_result(4.0)",),
        "asyncio.Future(loop=types.SimpleNamespace(get_debug=bool))",
    ),
    "bases": Kind("Derived()", "v.rate", ("Derived.__bases__ = (Other,)",), "Other()"),
    "abstract class": Kind(
        "Abstract", "2.0 if isinstance(THING, v) else 1.0", ("v.register(Thing)",), "Thing"
    ),
    "method of the library": Kind(
        "cr.nn.Identity()",
        "v(1.0)",
        ("v.forward = lambda x: 2 * x", "v.forward = lambda x: 3 * x"),
        "cr.nn.Flatten(0)",
    ),
    "context variable": Kind(
        "contextvars.ContextVar('v', default=2.0)",
        "v.get()",
        ("v.set(3.0)",),
        "contextvars.ContextVar('v', default=4.0)",
    ),
    "weak reference": Kind(
        "weakref.ref(under := Thing(2.0))", "v().rate", ("under.rate = 3.0",), "weakref.ref(THING)"
    ),
    "weak dict": Kind(
        "weakref.WeakValueDictionary(a=(under := Thing(2.0)))",
        "v['a'].rate",
        ("under.rate = 3.0", "v['a'] = THING"),
        "weakref.WeakValueDictionary(a=THING)",
    ),
    "weak key dict": Kind(
        "weakref.WeakKeyDictionary({THING: 2.0})",
        "v[THING]",
        ("v[THING] = 3.0",),
        "weakref.WeakKeyDictionary({THING: 4.0})",
    ),
    "proxy": Kind("weakref.proxy(under := Thing(2.0))", "v.rate", ("v.rate = 3.0",), "THING"),
    "attribute of a class by a computed name": Kind(
        "Derived()",
        "getattr(v, str('ra') + 'te')",
        ("Base.rate = 3.0", "Derived.rate = 4.0"),
        "Other()",
    ),
    "object": Kind(
        "Thing(2.0)",
        "getattr(v, 'other', 0) + v.rate + v.kind",
        ("v.rate = 3.0", "v.kind = 4.0", "v.other = 5.0", "v.__dict__['rate'] = 7.0"),
        "Thing(5.0)",
    ),
    "slots": Kind("Slots(2.0)", "v.rate", ("v.rate = 3.0",), "Slots(4.0)"),
    "namespace": Kind(
        "types.SimpleNamespace(rate=2.0)",
        "v.rate",
        ("v.rate = 3.0",),
        "types.SimpleNamespace(rate=4.0)",
    ),
    "dataclass": Kind(
        "Data(2.0)",
        "dataclasses.asdict(v)['rate'] + v.extra",
        ("v.rate = 3.0", "v.extra = 2.0"),
        "Data(4.0)",
    ),
    "property": Kind("Computed(2.0)", "v.doubled", ("v.half = 3.0",), "Computed(4.0)"),
    "descriptor": Kind(
        "Computed(2.0)",
        "v.scaled",
        ("type(v).__dict__['scaled'].factor += 1.0",),
        "Computed(4.0)",
    ),
    "cached property": Kind(
        "Computed(2.0)", "v.kept", ("v.half = 3.0; del v.kept", "v.kept = 9.0"), "Computed(4.0)"
    ),
    "any attribute": Kind(
        "Open(2.0)", "v.whatever", ("v.given = 3.0", "v.whatever = 4.0"), "THING"
    ),
    "enum": Kind("Mode.LOW", "v.value", (), "Mode.HIGH"),
    "which enum": Kind("Mode.LOW", "1.0 if v is Mode.LOW else 2.0", (), "Mode.HIGH"),
    "which object": Kind("THING", "1.0 if v is THING else 2.0", (), "Thing(1.0)"),
    "class": Kind(
        "type('Made', (), {'rate': 2.0})",
        "v.rate + getattr(v, 'other', 0.0)",
        ("v.rate = 3.0", "v.other = 4.0"),
        "Thing",
    ),
    "method": Kind(
        "type('Made', (), {'run': lambda self: 2.0})()",
        "v.run()",
        ("type(v).run = lambda self: 3.0", "v.run = lambda: 4.0"),
        "type('Made', (), {'run': lambda self: 2.5})()",
    ),
    "operator": Kind(
        "type('Made', (), {'__len__': lambda self: 2})()",
        "len(v)",
        ("type(v).__len__ = lambda self: 3",),
        "'four'",
    ),
    "truth": Kind(
        "type('Made', (), {})()",
        "1.0 if v else 2.0",
        ("type(v).__len__ = lambda self: 0",),
        "()",
    ),
    "function": Kind(
        "copied(helper)",
        "v()",
        (
            "v.__defaults__ = (7.0,)",
            "v.__code__ = (lambda rate=2.0: rate + 1).__code__",
            "FACTOR[0] = 5.0",
        ),
        "lambda: 3.0",
    ),
    "function attribute": Kind("copied(helper)", "v.rate", ("v.rate = 3.0",), "helper"),
    "partial": Kind(
        "functools.partial(scaled, 2.0, 1.0)",
        "v()",
        ("v.__setstate__((scaled, (3.0, 1.0), {}, {}))",),
        "functools.partial(scaled, 4.0, 1.0)",
    ),
    "cached function": Kind(
        "functools.lru_cache(lambda: FACTOR[0])",
        "v()",
        (
            "FACTOR[0] += 1",
            "FACTOR[0] += 1; v.cache_clear()",
            "FACTOR[0] += 1; v.cache_clear(); v()",
        ),
        "lambda: 9.0",
    ),
    "iterator": Kind("iter(range(2, 100))", "next(v)", (), "iter([5.0])"),
    "generator": Kind("(i for i in range(2, 100))", "next(v)", (), "iter([5.0])"),
    "decimal context": Kind(
        "decimal.Context(prec=5)", "v.prec", ("v.prec = 7",), "decimal.Context()"
    ),
    "module": Kind(
        "types.ModuleType('inner')",
        "getattr(v, 'rate', 2.0)",
        ("v.rate = 3.0",),
        "types.SimpleNamespace(rate=4.0)",
    ),
    "number in an array": Kind(
        "np.array([2.0, 3.0])", "float(v[0])", ("v[0] = 4.0", "v.fill(7.0)"), "np.ones(2)"
    ),
    "number in a large array": Kind(
        "np.ones(10**6)", "float(v[0])", ("v[0] = 4.0",), "np.zeros(10**6)"
    ),
    "number in a subclass of an array": Kind(
        "np.ones(2).view(np.matrix)", "float(v[0, 1])", ("v[0, 1] = 4.0",), "np.zeros((1, 2))"
    ),
    "attribute of an array": Kind(
        "np.zeros(2).view(Labelled)", "v.unit", ("v.unit = 3.0",), "np.zeros(2)[:1].view(Labelled)"
    ),
    "shape of an array": Kind(
        "np.arange(4.0)", "v.shape[0] + len(v)", ("v.resize(3, refcheck=False)",), "np.arange(5.0)"
    ),
    "what is in an array": Kind(
        "np.array([0.0, 3.0])", "len(v.tolist()) + (2.0 if v.any() else 1.0)", ("v[1] = 0",), "[]"
    ),
    "objects in an array": Kind(
        "np.array([Thing(1.0), None])", "v[0].rate", ("v[0].rate = 2.0",), "[THING]"
    ),
    "named tuple": Kind("Pair(1.0, [2.0])", "v.b[0]", ("v.b[0] = 3.0",), "Pair(4.0, [5.0])"),
    "defaults of a named tuple": Kind(
        "collections.namedtuple('Point', 'a b', defaults=[2.0])",
        "v(1.0).b",
        ("v.__new__.__defaults__ = (3.0,)",),
        "collections.namedtuple('Point', 'a b', defaults=[[4.0]])",
    ),
    "class pattern": Kind(
        "Matched()", "matched(v)", ("Matched.__match_args__ = ('b', 'a')", "v.b = 7.0"), "THING"
    ),
    "attribute of a key": Kind(
        "{Thing(2.0): 1, Thing(4.0): 2}",
        "[*v][0].rate",
        ("[*v][0].rate = 3.0", "first = [*v][0]; v[first] = v.pop(first)"),
        "[THING]",
    ),
    "key that is found by a comparison": Kind(
        "{Compared(2.0): 5.0}", "v.get(Compared(2.0), 1.0)", ("[*v][0].rate = 3.0",), "{}"
    ),
    "room of a deque": Kind(
        "collections.deque([1.0], maxlen=3)", "v.maxlen", (), "collections.deque([1.0], maxlen=4)"
    ),
    "cyclic": Kind("cyclic()", "v[0] + v[1][0]", ("v[0] = 3.0",), "[4.0, [1.0]]"),
    "tree with parents": Kind("tree()", "v.parts[0].up.rate", ("v.rate = 3.0",), "tree(5.0)"),
    "deep": Kind("deep(500)", "depth(v)", ("v[0][0][0] = []",), "deep(2)"),
    "environment": Kind(
        "os.environ",
        "float(v.get('CHAINRULE_TEST', 2))",
        ("v['CHAINRULE_TEST'] = '3'", "v.pop('CHAINRULE_TEST', 0)"),
        "{}",
    ),
    "environment by function": Kind(
        "os.getenv", "float(v('CHAINRULE_TEST', 2))", ("os.environ['CHAINRULE_TEST'] = '5'",), "v"
    ),
    "getter": Kind(
        "operator.attrgetter(''.join(['ra', 'te']))",
        "v(THING)",
        ("THING.rate += 1.0",),
        "operator.attrgetter('kind')",
    ),
}

PLACES = {
    "global": "def read(): return number(value)",
    "computed global": "def read(): return number(globals()[''.join(['val', 'ue'])])",
    "attribute of the module": (
        "def read(): return number(getattr(sys.modules[__name__], 'val' + str('ue')))"
    ),
    "variables of the module": "def read(): return number(vars(sys.modules[__name__])['value'])",
    "import inside": "def read():\n    import MODULE as here\n    return number(here.value)",
    "from import inside": "def read():\n    from MODULE import value\n    return number(value)",
    "import by name": (
        "def read(): return number(importlib.import_module(''.join('MODULE')).value)"
    ),
    "closure": (
        "def make(kept):\n"
        "    def read(): return number(kept)\n"
        "    def rebind(v):\n        nonlocal kept\n        kept = v\n"
        "    return read, rebind\n"
        "read, rebind = make(value)"
    ),
    "closure of a closure": (
        "def make(kept):\n    def read(): return (lambda: number(kept))()\n    return read\n"
        "read = make(value)"
    ),
    "attribute": (
        "class Holder:\n    def read(self): return number(self.held)\n"
        "holder = Holder()\nholder.held = value\n"
        "def read(): return holder.read()\n"
        "def rebind(v): holder.held = v"
    ),
    "slot": (
        "class Holder:\n    __slots__ = ('held', '__private')\n"
        "    def read(self): return number(self.__private)\n"
        "    def rebind(self, v): self.__private = v\n"
        "holder = Holder()\nholder.rebind(value)\n"
        "def read(): return holder.read()\n"
        "rebind = holder.rebind"
    ),
    "property": (
        "class Holder:\n    @property\n    def public(self): return self.held\n"
        "holder = Holder()\nholder.held = value\n"
        "def read(): return number(holder.public)\n"
        "def rebind(v): holder.held = v"
    ),
    "computed attribute": (
        "class Holder: pass\n"
        "holder = Holder()\nholder.held = value\n"
        "def read(): return number(getattr(holder, 'he' + str('ld')))\n"
        "def rebind(v): holder.held = v"
    ),
    "dict of an object": (
        "class Holder: pass\n"
        "holder = Holder()\nholder.held = value\n"
        "def read(): return number(holder.__dict__[''.join(['he', 'ld'])])\n"
        "def rebind(v): holder.held = v"
    ),
    "class attribute": (
        "class Base: held = value\n"
        "class Holder(Base): pass\n"
        "def read(): return number(Holder().held)\n"
        "def rebind(v): Holder.held = v"
    ),
    "default": "def read(v=value): return number(v)\ndef rebind(v): read.__defaults__ = (v,)",
    "keyword default": (
        "def read(*, v=value): return number(v)\ndef rebind(v): read.__kwdefaults__ = {'v': v}"
    ),
    "partial": "read = functools.partial(number, value)",
    "decorated": (
        "def twice(f):\n    @functools.wraps(f)\n    def wrapper(): return f() * 2\n"
        "    return wrapper\n"
        "@twice\ndef read(): return number(value)"
    ),
    "context manager": (
        "@contextlib.contextmanager\ndef opened():\n    yield number(value)\n"
        "def read():\n    with opened() as found:\n        return found"
    ),
    "generator": "def read(): return sum(number(v) for v in [value])",
    "evaluated": "def read(): return eval('number(value)')",
    "container": (
        "registry = {'a': [value]}\n"
        "def read(): return number(registry['a'][0])\n"
        "def rebind(v): registry['a'][0] = v"
    ),
    "attribute of a function": (
        "def read(): return number(read.held)\nread.held = value\ndef rebind(v): read.held = v"
    ),
    "builtins": (
        "builtins.chainrule_test = value\n"
        "def read(): return number(chainrule_test)\n"
        "def rebind(v): builtins.chainrule_test = v"
    ),
    "module getattr": (
        "def __getattr__(name): return value\n"
        "def read(): return number(sys.modules['MODULE'].something)"
    ),
}

HOUSING = ("plain", "installed", "named as a standard module")

PRELUDE = """
import abc, array, asyncio, builtins, collections, contextlib, contextvars, dataclasses, decimal
import enum, functools, importlib, operator, os, sys, types, weakref
import chainrule as cr
import numpy as np

class Thing:
    kind = 1.0
    def __init__(self, rate): self.rate = rate
THING = Thing(1.0)

class Slots:
    __slots__ = ("__weakref__", "rate")
    def __init__(self, rate): self.rate = rate

@dataclasses.dataclass
class Data:
    rate: float
    extra: float = 1.0

class Factor:
    factor = 2.0
    def __get__(self, instance, owner): return instance.half * self.factor

class Computed:
    scaled = Factor()
    def __init__(self, half): self.half = half
    @property
    def doubled(self): return self.half * 2
    @functools.cached_property
    def kept(self): return self.half * 3

class Open:
    def __init__(self, given): self.given = given
    def __getattr__(self, name): return self.given

class Rate(float): pass
class Labelled(np.ndarray): unit = 2.0
class Other: rate = 5.0
class Base: rate = 2.0
class Derived(Base): pass
class Abstract(abc.ABC): pass

class Mode(enum.Enum):
    LOW = 2.0
    HIGH = 3.0

class Pair(collections.namedtuple("Pair", "a b")): pass

class Matched:
    __match_args__ = ("a", "b")
    a, b = 2.0, 3.0
def matched(v):
    match v:
        case Matched(found): return found
        case _: return 1.0
class Compared(Thing):
    def __hash__(self): return 1
    def __eq__(self, other): return self.rate == other.rate

FACTOR = [2.0]
def helper(rate=2.0): return rate * FACTOR[0]
helper.rate = 6.0
def copied(f):
    made = types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__)
    made.rate = 2.0
    return made
def scaled(rate, x): return rate * x

def cyclic():
    found = [2.0]
    found.append(found)
    return found
class Node:
    def __init__(self, rate, up): self.rate, self.up, self.parts = rate, up, []
def tree(rate=2.0):
    top = Node(rate, None)
    top.parts += [Node(1.0, top), Node(2.0, top)]
    return top
def deep(n):
    found = []
    for _ in range(n): found = [found]
    return found
def depth(v):
    found = 1.0
    while v: v, found = v[0], found + 1
    return found

def number(v): return NUMBER
value = SOURCE
PLACE
if "rebind" not in globals():
    def rebind(v):
        global value
        value = v
def change_in_place(i):
    v = value
    CHANGES
def change(): rebind(OTHER)
def eager(x): return x * read()
"""


def text_of(kind: Kind, place: str, module: str) -> str:
    """Return the source of a module that reads a value of this kind in this place."""
    changes = [f"if i == {i}:\n        {source}" for i, source in enumerate(kind.changes)]
    parts = {
        "SOURCE": kind.source,
        "PLACE": PLACES[place].replace("MODULE", module),
        "NUMBER": kind.number,
        "CHANGES": "\n    ".join(changes) or "pass",
        "OTHER": kind.other.replace("v", "value") if kind.other == "v" else kind.other,
    }
    text = PRELUDE
    for name, source in parts.items():
        text = text.replace(name, source)
    return text


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules."""
    before = set(sys.modules)
    monkeypatch.delenv("CHAINRULE_TEST", raising=False)
    yield tmp_path
    monkeypatch.delenv("CHAINRULE_TEST", raising=False)
    vars(importlib.import_module("builtins")).pop("chainrule_test", None)
    for name in set(sys.modules) - before:
        if name.startswith("reads_"):
            del sys.modules[name]


def imported(folder: Path, text: str, housing: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a new module with this text: of the user, or installed, or with a name of Python's."""
    name = "sched" if housing.startswith("named") else f"reads_{next(_NUMBERS)}"
    home = folder / "site-packages" if housing == "installed" else folder
    home.mkdir(exist_ok=True)
    (home / f"{name}.py").write_text(text.replace("reads_MODULE", name))
    monkeypatch.syspath_prepend(str(home))
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    importlib.invalidate_caches()
    return importlib.import_module(name)


_NUMBERS = itertools.count()

CASES = [
    pytest.param(kind, place, HOUSING[(i + j) % len(HOUSING)], id=f"{kind}-{place}")
    for i, kind in enumerate(KINDS)
    for j, place in enumerate(PLACES)
    if (i + 3 * j) % 7 == 0 or place == "global"  # all of them take a minute
]


def same(compiled: Any, eager: Any) -> None:
    """Check that a compiled function returns what the eager one does, or says why it can't."""
    x = cr.tensor([1.0, 2.0], dtype=cr.float64)
    wanted = eager(x).tolist()
    with contextlib.suppress(cr.CompileError):
        assert compiled(x).tolist() == wanted
        return
    with pytest.raises(cr.CompileError, match="outside"):  # a way out
        compiled(x)


@pytest.mark.parametrize(("kind", "place", "housing"), CASES)
def test_changes(
    kind: str, place: str, housing: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = text_of(KINDS[kind], place, "reads_MODULE")
    module = imported(folder, text, housing, monkeypatch)
    if "iterator" in kind or "generator" in kind:
        compiled = cr.compile(
            module.eager, backend="numpy", verify=False
        )  # an eager run changes it
        first = compiled(cr.tensor(1.0)).item()
        assert compiled(cr.tensor(1.0)).item() != first or place == "decorated"
        return
    compiled = cr.compile(module.eager, backend="numpy", verify=False)  # an eager run changes it
    try:
        module.eager(cr.tensor(1.0))
    except TypeError:  # a function is a method there
        return
    same(compiled, module.eager)
    same(compiled, module.eager)
    if "large" not in kind:
        assert (len(compiled.signatures), compiled._single_use) == (1, 0)
    for i in range(len(KINDS[kind].changes)):
        module.change_in_place(i)
        same(compiled, module.eager)
        same(compiled, module.eager)
    module.change()
    try:
        module.eager(cr.tensor(1.0))
    except Exception as error:
        with pytest.raises((type(error), cr.CompileError)):
            compiled(cr.tensor(1.0, dtype=cr.float64))
    else:
        same(compiled, module.eager)


ARGUMENTS: list[tuple[Any, Any]] = [  # a value, and how to change it
    ([1.0, 2.0], lambda v: v.reverse()),
    ([1.0] * 20, lambda v: v.__setitem__(9, 2.0)),
    ({1.0, 2.0}, lambda v: v.add(5.0)),
    (deque([1.0, 2.0]), lambda v: v.rotate()),
    (deque([1.0, 2.0]), lambda v: v.append(1.0)),
    (bytearray([1, 2]), lambda v: v.reverse()),
    (array.array("d", [1.0, 2.0]), lambda v: v.reverse()),
    (array.array("d", [1.0, 2.0]), lambda v: v.append(2.0)),
    (UserList([1.0, 2.0]), lambda v: v.append(2.0)),
    (memoryview(bytearray([1, 2])), lambda v: v.__setitem__(0, 5)),
]


@pytest.mark.parametrize(("value", "change"), ARGUMENTS)
def test_arguments_changed_in_place(value: Any, change: Any) -> None:
    def function(x: Any, v: Any) -> Any:
        return x * sum(i * (k + 1.0) for k, i in enumerate(v))

    compiled, x = cr.compile(function, backend="numpy"), cr.tensor(1.0)
    assert [compiled(x, value).item() for _ in range(2)] == [function(x, value).item()] * 2
    assert len(compiled.signatures) == 1
    before = compiled(x, value).item()
    change(value)
    assert compiled(x, value).item() == function(x, value).item() != before


def test_the_order_of_keywords() -> None:
    def function(x: Any, **factors: float) -> Any:
        return x * next(iter(factors.values()))

    compiled = cr.compile(function, backend="numpy")
    assert compiled(cr.tensor(1.0), a=2.0, b=3.0).item() == 2.0
    assert compiled(cr.tensor(1.0), b=3.0, a=2.0).item() == 3.0


NUMBERS = np.array([2.0, 3.0, 4.0])


def _multiplied(x: Any) -> Any:
    return x * NUMBERS


def _multiplied_by_a_part(x: Any) -> Any:
    return cr.tensor(NUMBERS[:3]) * x * NUMBERS.shape[0] * len(NUMBERS)


def _read_as_well(x: Any) -> Any:
    return x * NUMBERS * float(NUMBERS[0])


def _read_and_copied(x: Any) -> Any:
    return x * (NUMBERS * 2) + NUMBERS[[0, 1, 1]]


def _chosen(x: Any) -> Any:
    numbers = NUMBERS
    return x + numbers if numbers.any() else x


@pytest.mark.parametrize(
    ("function", "traces"),
    [
        (_multiplied, 1),
        (_multiplied_by_a_part, 1),
        (_read_as_well, 2),
        (_read_and_copied, 2),
        (_chosen, 2),
    ],
)
def test_arrays_are_read_at_each_call_or_compared(function: Any, traces: int) -> None:
    compiled, x = cr.compile(function, backend="numpy"), cr.ones(3, dtype=cr.float64)
    for _ in range(2):
        assert compiled(x).tolist() == function(x).tolist()
    NUMBERS[:] += 1
    assert compiled(x).tolist() == function(x).tolist()
    assert len(compiled.signatures) == traces


def test_a_long_container_is_compared_by_its_length() -> None:
    """Not by the identity of the number that is its length, which Python makes anew."""
    functions = [abs] * 300
    compiled, x = cr.compile(lambda x: x * len(functions), backend="numpy"), cr.tensor(1.0)
    assert [compiled(x).item() for _ in range(2)] == [300.0] * 2
    assert len(compiled.signatures) == 1
    functions.append(abs)
    assert compiled(x).item() == 301.0


def test_arrays_in_files_are_read_at_each_call(tmp_path: Path) -> None:
    for mapped in (
        np.memmap(tmp_path / "numbers", "f8", "w+", shape=(200_000,)),
        np.zeros(200_000).view(type("Own", (np.ndarray,), {})),
    ):

        def part(x: Any) -> Any:
            return x * mapped[:2] + mapped[2:4]  # noqa: B023

        compiled = cr.compile(part, backend="numpy")
        for number in (1.0, 7.0):
            mapped[:4] = number
            assert compiled(cr.ones(2, dtype=cr.float64)).tolist() == [2 * number] * 2
        assert len(compiled.signatures) == 1


def test_a_large_array_that_python_reads() -> None:
    large = np.ones(10**6)
    compiled = cr.compile(lambda x: x * float(large[0]), backend="numpy")
    with pytest.raises(cr.CompileError, match=r"8\.0 MB .*writeable = False"):
        compiled(cr.tensor(1.0))
    large.flags.writeable = False
    assert compiled(cr.tensor(1.0)).item() == 1.0


OUTSIDE = {
    "file": ("open({path!r}).read()", "pathlib.Path({path!r}).write_text('3.0')"),
    "path": ("pathlib.Path({path!r}).read_text()", "pathlib.Path({path!r}).write_text('3.0')"),
    "is there": ("os.path.exists({path!r})", "os.remove({path!r})"),
    "NumPy's text": ("np.loadtxt({path!r})", "pathlib.Path({path!r}).write_text('3.0')"),
    "NumPy's memory": (
        "np.fromfile({path!r}, np.uint8)[0]",
        "pathlib.Path({path!r}).write_text('3.0')",
    ),
    "NumPy's map": ("np.memmap({path!r}, np.uint8)[0]", "pathlib.Path({path!r}).write_text('3.0')"),
    "NumPy's file": ("np.load(NPY)", "np.save(NPY, 3.0)"),
    "compressed file": ("gzip.open('a.gz').read()", "written(3.0)"),
    "archive": ("zipfile.ZipFile('a.zip').read('a')", "written(3.0)"),
    "settings": ("settings.read('a.ini') and settings['a']['b']", "written(3.0)"),
    "address": ("urlopen(pathlib.Path('a').absolute().as_uri()).read()", "written(3.0)"),
    "database": ("of_database()", "written(3.0)"),
    "our file": ("cr.load(OUR)", "cr.save(cr.tensor(3.0), OUR)"),
    "folder": ("len(os.getcwd())", "os.chdir('/')"),
    "clock": ("perf_counter()", "None"),
    "date": ("datetime.datetime.now().timestamp()", "None"),
    "entropy": ("uuid.uuid4().int", "None"),
    "system's numbers": ("random.SystemRandom().random()", "None"),
    "precision": ("decimal.getcontext().prec", "setattr(decimal.getcontext(), 'prec', 7)"),
    "thread": ("in_a_thread()", "FACTOR.append(2)"),
    "threads": ("threading.active_count()", "threading.Thread(target=EVENT.wait).start()"),
    "entropy of Python": ("secrets.randbelow(10**9)", "None"),
    "buffer": ("BUFFER.getvalue()", "BUFFER.write('0')"),
    "digest": ("DIGEST.digest()[0]", "DIGEST.update(b'x')"),
    "frame": ("inspect.currentframe().f_globals['NUMBER']", "globals().update(NUMBER=9)"),
}


@pytest.mark.parametrize("requires_grad", [False, True])
def test_arrays_of_other_libraries(requires_grad: bool) -> None:
    """Their memory is compared; the function is traced at each call where that isn't possible."""
    torch = pytest.importorskip("torch")
    foreign = torch.ones(3, dtype=torch.float64, requires_grad=requires_grad)

    def function(x: Any) -> Any:
        return x * foreign.detach().numpy() * float(foreign.detach()[0])

    compiled, x = cr.compile(function, backend="numpy", verify=False), cr.ones(3, dtype=cr.float64)
    for _ in range(3):
        assert compiled(x).tolist() == [1.0] * 3
    assert (len(compiled.signatures), compiled._single_use) == ((0, 3) if requires_grad else (1, 0))
    foreign.data.mul_(2)
    assert compiled(x).tolist() == [4.0] * 3


def test_modules_whose_attributes_raise_other_errors() -> None:
    module: Any = types.ModuleType("lazy")
    module.__getattr__ = {"rate": 2.0}.__getitem__
    compiled = cr.compile(lambda x: x * module.rate, backend="numpy")
    assert compiled(cr.tensor(1.0)).item() == 2.0


@pytest.mark.no_verify("what differs from call to call is refused then")
@pytest.mark.parametrize("kind", OUTSIDE)
def test_clocks_files_and_threads_are_read_at_each_call(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "number"
    path.write_text("2.0")
    monkeypatch.chdir(tmp_path)
    read, change = (text.format(path=str(path)) for text in OUTSIDE[kind])
    text = f"""
import configparser, contextlib, datetime, decimal, gzip, hashlib, inspect, io, os, pathlib
import random, secrets, sqlite3, threading, uuid, zipfile
import chainrule as cr
import numpy as np
from time import perf_counter
from urllib.request import urlopen
FACTOR, NUMBER, EVENT = [1], 8, threading.Event()
NPY, OUR = "a.npy", "a.tensor"
np.save(NPY, 2.0)
cr.save(cr.tensor(2.0), OUR)
BUFFER, DIGEST = io.StringIO("1"), hashlib.sha256()
settings = configparser.ConfigParser()
def written(number):
    pathlib.Path("a").write_text(str(number))
    pathlib.Path("a.ini").write_text(f"[a]\\nb={{number}}")
    with gzip.open("a.gz", "wt") as file: file.write(str(number))
    with zipfile.ZipFile("a.zip", "w") as file: file.writestr("a", str(number))
    with contextlib.closing(sqlite3.connect("a.db")) as file, file:
        file.execute("create table if not exists a(b)")
        file.execute("delete from a")
        file.execute("insert into a values(?)", (number,))
def of_database():
    with contextlib.closing(sqlite3.connect("a.db")) as file:
        return file.execute("select b from a").fetchone()[0]
written(2.0)
def in_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(len(FACTOR)))
    thread.start()
    thread.join()
    return found[0]
def function(x): return x * float({read})
def change(): {change}
"""
    module = imported(tmp_path, text, "of the user", monkeypatch)
    compiled, x = cr.compile(module.function, backend="numpy"), cr.ones((), dtype=cr.float64)
    with decimal.localcontext():
        before = [compiled(x).item() for _ in range(2)]
        module.change()
        after, eager = compiled(x).item(), module.function(x).item()
    module.EVENT.set()
    assert after != before[-1]
    assert after == eager or change == "None"


STATES = {  # of generators and locks: a read, and a change
    "generator": ("RANDOM.getstate()[1][0]", "RANDOM.random()"),
    "bound method": ("GETSTATE()[1][0]", "RANDOM.random()"),
    "NumPy's generator": ("int(RNG.bit_generator.state['state']['state'] % 997)", "RNG.random()"),
    "bit generator": ("int(BITS.state['state']['state'] % 997)", "BITS.random_raw()"),
    "old generator": ("OLD.get_state()[2]", "OLD.random_sample(3)"),
    "shared generator": ("np.random.get_state()[2]", "np.random.random()"),
    "copied": ("copy.deepcopy(RANDOM).random()", "RANDOM.random()"),
    "copied in C": ("copy.deepcopy(RNG).random()", "RNG.random()"),
    "pickled": ("pickle.loads(pickle.dumps(RNG)).random()", "RNG.random()"),
    "spawned": ("RNG.spawn(1)[0].random()", "None"),
    "seeds": ("SEEDS.spawn(1)[0].generate_state(1)[0]", "None"),
    "subclasses": ("len(Base.__subclasses__())", "KEPT.append(type('Second', (Base,), {}))"),
    "finalizer": ("ENDING.alive + 1", "ENDING.detach()"),
    "lock": ("LOCK.locked() + 1", "LOCK.acquire()"),
}


@pytest.mark.no_verify("an eager run changes them, too")
@pytest.mark.parametrize("kind", STATES)
def test_states_of_generators_and_locks_are_read_at_each_call(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, change = STATES[kind]
    text = f"""
import copy, pickle, random, threading, weakref
import numpy as np
RANDOM, RNG, BITS, OLD = random.Random(0), np.random.default_rng(0), np.random.PCG64(0), None
OLD, SEEDS, LOCK = np.random.RandomState(0), np.random.SeedSequence(0), threading.Lock()
GETSTATE = RANDOM.getstate
class Base: pass
KEPT = [type("First", (Base,), {{}})]
ENDING = weakref.finalize(Base, print)
def function(x): return x * float({read})
def change(): {change}
"""
    eager, traced = (imported(tmp_path, text, "of the user", monkeypatch) for _ in "ab")
    compiled, x = cr.compile(traced.function, backend="numpy"), cr.ones((), dtype=cr.float64)
    shared = np.random.get_state()
    found = []
    for module, function in ((eager, eager.function), (traced, compiled)):
        np.random.set_state(shared)
        found.append([function(x).item()])
        module.change()
        found[-1] += [function(x).item(), function(x).item()]
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]


def test_generators_and_locks_whose_state_is_not_read_take_one_trace() -> None:
    rng, lock, state = np.random.default_rng(0), threading.Lock(), types.SimpleNamespace(state=2.0)

    def function(x: Any) -> Any:
        with lock:
            return x * state.state + cr.rand(2, rng=rng)

    compiled = cr.compile(function, backend="numpy")
    for _ in range(3):
        compiled(cr.ones(2))
    assert (len(compiled.signatures), compiled._single_use) == (1, 0)


@pytest.mark.no_verify("what differs from call to call is refused then")
def test_numbers_of_a_bit_generator_are_refused() -> None:
    bits = np.random.PCG64(0)
    with pytest.raises(cr.CompileError, match="PCG64, whose numbers would be the same"):
        cr.compile(lambda x: x * float(bits.random_raw()), backend="numpy")(cr.ones(2))


@pytest.mark.parametrize(
    "size",
    [
        lambda v: len(pickle.dumps(v)),
        lambda v: pickle.Pickler(io.BytesIO()).dump(v) or len(v.__reduce_ex__(2)[2]["rate"]),
        lambda v: len(v.__getstate__()["rate"]),
    ],
)
def test_attributes_that_only_a_pickle_reads(size: Any) -> None:
    thing = Pickled()
    compiled = cr.compile(lambda x: x * size(thing), backend="numpy")
    for count in (1, 20, 50):
        thing.rate.extend([1.0] * count)
        for _ in range(2):
            assert compiled(cr.tensor(1.0)).item() == size(thing)
    assert len(compiled.signatures) == 3


class Pickled:
    def __init__(self) -> None:
        self.rate: list[float] = []


def test_decimal_numbers_are_rounded_as_now() -> None:
    third = decimal.Decimal(1) / 3

    def function(x: Any) -> Any:
        return x * float(third / 3)

    compiled, x = cr.compile(function, backend="numpy"), cr.ones((), dtype=cr.float64)
    for digits in (5, 2, 5):
        with decimal.localcontext(prec=digits):
            assert compiled(x).item() == function(x).item()
    assert len(compiled.signatures) == 2


def test_a_method_of_a_library_class_that_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = cr.nn.Tanh()
    compiled, x = cr.compile(lambda x: layer(x), backend="numpy"), cr.ones(2)
    compiled(x)
    monkeypatch.setattr(cr.nn.Tanh, "forward", lambda self, x: x * 3)
    assert compiled(x).tolist() == [3.0, 3.0]


def test_a_series_of_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cython code of pandas finds arrays in a cache that no Python code names."""
    series = pytest.importorskip("pandas").Series([2.0, 3.0])
    compiled, x = cr.compile(lambda x: x * series.to_numpy(), backend="numpy"), cr.ones(2)
    for i, value in enumerate([2.0, 5.0, 7.0, 9.0]):
        series.iloc[i % 2] = value
        assert compiled(x).tolist() == series.tolist()


def test_logs_are_not_read() -> None:
    log = logging.getLogger("chainrule test")
    log.addHandler(logging.StreamHandler(io.StringIO()))
    log.propagate = False

    def function(x: Any) -> Any:
        log.warning("%s", x.shape)
        return x * 2

    compiled = cr.compile(function, backend="numpy")
    for _ in range(2):
        compiled(cr.ones(2))
    assert len(compiled.signatures) == 1


@pytest.mark.no_verify("each eager run would print")
@pytest.mark.parametrize("where", ["method", "attribute"])
def test_prints_are_not_read(where: str) -> None:
    """A notebook writes through functions of Python, which look at clocks and threads."""
    written: list[tuple[str, float]] = []

    def write(text: str) -> int:
        written.append((text, time.perf_counter()))
        return len(text)

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            return write(text)

    stream = Stream() if where == "method" else io.StringIO()
    if where == "attribute":
        stream = types.SimpleNamespace(write=write, flush=lambda: None)  # type: ignore[assignment]

    def function(x: Any) -> Any:
        print("traced")
        return x * 2

    compiled = cr.compile(function, backend="numpy")
    with contextlib.redirect_stdout(stream):
        for _ in range(3):
            compiled(cr.ones(2))
    assert len(compiled.signatures) == 1
    assert [text for text, _ in written] == ["traced", "\n"]


def test_names_in_formats() -> None:
    options = types.SimpleNamespace(rate=2.0)
    text = "{0.rate:.3} times"
    compiled = cr.compile(lambda x: x * float(text.format(options).split()[0]))
    for rate in (2.0, 3.0):
        options.rate = rate
        assert compiled(cr.tensor(1.0)).item() == rate


def test_modules_that_are_not_there_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        try:
            import reads_later as module  # type: ignore[import-not-found]
        except ImportError:
            return x * 2 if "reads_last" in sys.modules else x
        return x * module.number

    compiled = cr.compile(function, backend="numpy")
    assert compiled(cr.tensor(1.0)).item() == 1
    monkeypatch.setitem(sys.modules, "reads_last", None)
    assert compiled(cr.tensor(1.0)).item() == 2
    monkeypatch.setitem(sys.modules, "reads_later", types.SimpleNamespace(number=5))
    assert compiled(cr.tensor(1.0)).item() == 5


def test_classes_of_python_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    options = argparse.Namespace(rate=2.0)
    compiled = cr.compile(lambda x: x * options.rate, backend="numpy")
    compiled(cr.tensor(1.0))
    monkeypatch.setattr(argparse.Namespace, "unused", 1, raising=False)
    compiled(cr.tensor(1.0))
    assert len(compiled.signatures) == 1


def test_a_module_looked_up_by_name_is_the_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, other = (imported(tmp_path, "number = 2.0", "of the user", monkeypatch) for _ in "ab")
    text = f"import sys\ndef function(x): return x * sys.modules[{used.__name__!r}].number"
    compiled = cr.compile(
        imported(tmp_path, text, "of the user", monkeypatch).function, backend="numpy"
    )
    traces = []
    for module in (used, other, used):
        assert compiled(cr.tensor(1.0)).item() == used.number
        traces.append(len(compiled.signatures))
        module.number += 1
    assert traces == [1, 2, 2]


def test_debuggers_and_profilers_stay() -> None:
    rate = [2.0]
    compiled = cr.compile(lambda x: x * rate[0], backend="numpy")
    calls: list[str] = []

    def tracer(frame: Any, event: str, argument: Any) -> None:
        calls.append(event)

    for hooks in ((sys.settrace,), (sys.setprofile,), (sys.settrace, sys.setprofile)):
        before = sys.gettrace(), sys.getprofile()
        try:
            for install in hooks:
                install(tracer)
            got = compiled(cr.tensor(1.0)).item(), compiled(cr.tensor(1.0)).item()
            rate[0] += 1.0
            later = compiled(cr.tensor(1.0)).item()
            assert (sys.gettrace() is tracer) == (sys.settrace in hooks)
            assert (sys.getprofile() is tracer) == (sys.setprofile in hooks)
        finally:
            sys.settrace(before[0])
            sys.setprofile(before[1])
        assert (*got, later) == (rate[0] - 1, rate[0] - 1, rate[0])


def test_a_function_that_reaches_very_much() -> None:
    parts = [[object()] for _ in range(30_000)]
    with pytest.raises(cr.CompileError, match="more than 20,000 values by name"):
        cr.compile(lambda x: x * len(parts), backend="numpy")(cr.tensor(1.0))


class Layers:
    def __init__(self, package: Any) -> None:
        self.package, self.parts = package, types.SimpleNamespace(w0=2.0, w1=[3.0])


@pytest.mark.parametrize(
    "look_up",
    [
        lambda layers, i: getattr(layers.parts, f"w{i}"),
        lambda layers, i: getattr([layers.parts][0], f"w{i}"),
        lambda layers, i: vars(layers.parts)[f"w{i}"],
        lambda layers, i: next(v for k, v in layers.parts.__dict__.items() if k == f"w{i}"),
    ],
)
def test_computed_names_do_not_open_packages_in_sight(look_up: Any) -> None:
    """A package has many globals, each with attributes of its own."""
    package = types.ModuleType("package")
    vars(package).update(
        {f"v{i}": types.SimpleNamespace(a=[i], b={i: [i]}, c=[[i]]) for i in range(5_000)}, rate=1.0
    )
    layers = Layers(package)

    def function(x: Any) -> Any:
        for i in range(2):
            found = look_up(layers, i)
            x = x * (found[0] if isinstance(found, list) else found)
        return x * layers.package.rate

    compiled = cr.compile(function, backend="numpy")
    assert [compiled(cr.tensor(1.0)).item() for _ in range(2)] == [6.0, 6.0]
    assert len(compiled.signatures) == 1
    layers.parts.w1[0] = 5.0
    assert compiled(cr.tensor(1.0)).item() == 10.0
    package.rate = 2.0  # type: ignore[attr-defined]
    assert compiled(cr.tensor(1.0)).item() == 20.0
    layers.parts.w0 = 1.0
    assert compiled(cr.tensor(1.0)).item() == 10.0


def test_cyclic_and_deep_data_in_scope() -> None:
    cyclic: list[Any] = [1.0]
    cyclic.append(cyclic)
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    tree: dict[str, Any] = {"rate": 2.0}
    tree["parts"] = [{"up": tree}]

    def function(x: Any) -> Any:
        return x * cyclic[1][0] * tree["parts"][0]["up"]["rate"] + len(deep)

    compiled = cr.compile(function, backend="numpy")
    assert [compiled(cr.tensor(1.0)).item() for _ in range(2)] == [3.0, 3.0]
    assert len(compiled.signatures) == 1
    tree["rate"] = 5.0
    assert compiled(cr.tensor(1.0)).item() == 6.0


def test_installed_packages_are_not_the_standard_library() -> None:
    folder = Path(contextlib.__file__).parent
    assert is_standard[str(folder / "queue.py")]
    for name in ("site-packages", "dist-packages"):
        assert not is_standard[str(folder / name / "queue.py")]
    assert not is_standard[str(folder.parent / "queue.py")]


def decorated(function: Any) -> Any:
    """Return a function with the same code for whatever it decorates."""

    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


class Handler:
    def __init__(self) -> None:
        self.calls = [0]

    def __call__(self, *args: Any) -> None:
        self.calls[0] += 1

    handle = __call__


@pytest.mark.parametrize("kind", ["function", "object", "method", "partial", "decorated"])
def test_signal_handlers_are_not_part_of_a_function(kind: str) -> None:
    handler = Handler()

    def on_signal(signum: int, frame: Any) -> None:
        handler(signum, frame)

    def on_named_signal(name: str, signum: int, frame: Any) -> None:
        handler(signum, frame)

    handlers = {
        "function": on_signal,
        "object": handler,
        "method": handler.handle,
        "partial": functools.partial(on_named_signal, "SIGINT"),
        "decorated": decorated(on_signal),
    }

    def step(c: Any, x: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return c * x, c + rate[0]

    @functools.partial(cr.compile, backend="numpy")
    @decorated
    def function(x: Any) -> Any:
        c, ys = cr.scan(step, x.sum(), x)
        return (c + ys).sum()

    rate = [1.0]
    before = signal.signal(signal.SIGINT, handlers[kind])
    try:
        results = [function(cr.tensor([1.0, 2.0])).item() for _ in range(2)]
        rate[0] = 2.0
        results.append(function(cr.tensor([1.0, 2.0])).item())
    finally:
        signal.signal(signal.SIGINT, before)
    assert handler.calls[0] > 0
    assert results == [20.0, 20.0, 22.0]


def test_code_that_frees_memory_is_not_part_of_a_function() -> None:
    collections = [0]

    def on_collection(phase: str, info: Any) -> None:
        collections[0] += 1

    class Freed:
        def __del__(self) -> None:
            collections[0] += 1

    def function(x: Any) -> Any:
        gc.collect()
        Freed()
        return x * 2

    compiled = cr.compile(function, backend="numpy")
    gc.callbacks.append(on_collection)
    try:
        compiled(cr.tensor(1.0))
    finally:
        gc.callbacks.remove(on_collection)
    assert collections[0] >= 3
    assert len(compiled.signatures) == 1
