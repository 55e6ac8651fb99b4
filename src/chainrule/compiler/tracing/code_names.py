"""Names that a code object looks up: globals, attributes, modules, and names that it computes."""

from __future__ import annotations

import dis
import operator
import re
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

COMPUTED_LOOKUPS = (getattr, hasattr, setattr, delattr, vars, dir)
"""Builtins that look up attributes by names that are given to them."""

_LOOKUP_NAMES = frozenset(function.__name__ for function in COMPUTED_LOOKUPS)
_ANY_ATTRIBUTE = frozenset(
    [
        *("__dict__", "__getattribute__", "__getstate__", "__reduce__", "__reduce_ex__"),
        *(operator.attrgetter.__name__, operator.methodcaller.__name__),
    ]
)

_GLOBAL_OPCODES = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")
_ATTRIBUTE_OPCODES = (
    "LOAD_ATTR",
    "LOAD_METHOD",
    "LOAD_SUPER_ATTR",
    "STORE_ATTR",
    "DELETE_ATTR",
    "IMPORT_FROM",
)
_VARIABLE_OPCODES = (
    "LOAD_FAST",
    "LOAD_FAST_BORROW",
    "LOAD_FAST_LOAD_FAST",
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW",
    "LOAD_GLOBAL",
    "LOAD_NAME",
    "LOAD_DEREF",
)
_JUMPS = frozenset([*dis.hasjrel, *dis.hasjabs])


class CodeNames(NamedTuple):
    """The names that a code object looks up itself, without those of inner functions."""

    attributes: frozenset[str]  # also strings, which may be attributes
    globals: frozenset[str]
    modules: tuple[tuple[str, int], ...]  # name and level of each import
    computed: frozenset[str]  # objects such as `self.layers` in which computed names are looked up
    any_attribute: bool  # whether other objects' attributes are looked up by computed names
    any_global: bool  # whether globals are
    module_keys: frozenset[str]  # variables with names of modules in `sys.modules`
    any_module: bool  # whether modules are looked up by other computed names
    tolerant: bool  # whether an attribute may be absent


@lru_cache(4096)
def code_names(code: CodeType) -> CodeNames:
    """Return the names that a code object looks up."""
    found = [i for i in dis.get_instructions(code) if i.opname != "EXTENDED_ARG"]
    attributes = {i.argval for i in found if i.opname in _ATTRIBUTE_OPCODES}
    spaces = {i.argval for i in found if i.opname in _GLOBAL_OPCODES}
    used = attributes | spaces
    texts = [c for c in code.co_consts if isinstance(c, str)]
    strings = {part for c in texts for part in names_in(c)}
    stores = [i for i in found if i.opname.startswith("STORE_") and i.argval]
    assigned = {name for each in stores for name in _variables(each)}
    objects: set[str | None] = set()
    for position, each in enumerate(found):
        if each.opname in _GLOBAL_OPCODES and each.argval in _LOOKUP_NAMES:
            objects |= _object_of_lookup(found, position)
    some = {name for name in objects if name is not None and assigned.isdisjoint(name.split("."))}
    calls_globals, keys = _keys_of_globals(found)
    module_keys, any_module = _keys_of_modules(found)
    matches = _matches_classes(found)
    return CodeNames(
        frozenset(attributes | strings | ({"__match_args__"} if matches else set())),
        frozenset(spaces | keys),
        tuple(_imports(found)),
        frozenset(some),
        some != objects or not used.isdisjoint(_ANY_ATTRIBUTE) or matches,
        calls_globals,
        frozenset(module_keys),
        any_module or "__import__" in used,
        not used.isdisjoint(_LOOKUP_NAMES) or bool(code.co_exceptiontable),
    )


_NAME = re.compile(r"(?<![^.{\[])[^\W\d]\w*(?![^].:!}])")
"""Names with dots, alone or in braces between other text, as for `str.format`."""

_MAX_NAME = 200
"""Length, in characters, of the longest string that is taken for a name."""


def names_in(text: str) -> list[str]:
    """Return the names of attributes in a string that code may look up."""
    return _NAME.findall(text) if len(text) < _MAX_NAME else []


def _imports(found: list[dis.Instruction]) -> list[tuple[str, int]]:
    return [
        (each.argval, int(found[i - 2].argval or 0))
        for i, each in enumerate(found)
        if each.opname == "IMPORT_NAME"
    ]


def _matches_classes(found: list[dis.Instruction]) -> bool:
    """Whether a class pattern reads attributes, whose names the class may decide."""
    return any(each.opname == "MATCH_CLASS" for each in found)


def _keys_of_globals(found: list[dis.Instruction]) -> tuple[bool, set[str]]:
    """Return whether `globals()` is used other than in `globals()["name"]`, and those names."""
    keys: set[str] = set()
    anything = False
    for i, each in enumerate(found):
        if each.opname in _GLOBAL_OPCODES and each.argval in ("globals", "vars", "locals"):
            after = [x for x in found[i + 1 : i + 6] if x.opname not in ("PRECALL", "CALL")]
            constant = after and after[0].opname == "LOAD_CONST"
            if constant and len(after) > 1 and after[1].opname in _SUBSCRIPTS:
                keys.add(after[0].argval)
            elif each.argval == "globals":
                anything = True
    return anything, keys


def _keys_of_modules(found: list[dis.Instruction]) -> tuple[set[str], bool]:
    """Return the variables that are keys of `sys.modules`, and whether there are other keys."""
    keys: set[str] = set()
    others = False
    for i, each in enumerate(found):
        if each.argval == "modules" and each.opname in (*_ATTRIBUTE_OPCODES, *_GLOBAL_OPCODES):
            following = [x for x in found[i + 1 : i + 4] if x.argval != "get"]
            if following and following[0].opname == "CONTAINS_OP":
                first = i - (
                    each.opname in _ATTRIBUTE_OPCODES
                )  # where `sys` or `modules` is loaded
                following = [found[first - 1], *following] if first else following
            if len(following) > 1 and following[0].opname in _VARIABLE_OPCODES:
                keys.add(_variables(following[0])[0])
            elif not following or following[0].opname != "LOAD_CONST":
                others = True
            else:
                keys.add(f"'{following[0].argval}")
    return keys, others


_SUBSCRIPTS = ("BINARY_SUBSCR", "STORE_SUBSCR")


def _object_of_lookup(found: list[dis.Instruction], position: int) -> set[str | None]:
    """Return the object that a call of `getattr` or the like looks into; None if unknown.

    Empty if the name is a constant. `position` is that of the instruction that loads `getattr`.
    """
    depth = 0  # of the stack above the callee
    starts: list[int] = []  # where each item of it begins
    for i in range(position + 1, len(found)):
        each: Any = found[i]
        if each.opname in ("PRECALL", "CALL") and each.arg == depth:
            parts = [found[a:b] for a, b in zip(starts, [*starts, i][1:], strict=True)]
            return _object_among(parts) if parts else {None}
        if each.opcode in _JUMPS:
            return {None}
        argument = each.arg if each.opcode >= dis.HAVE_ARGUMENT else None
        effect = dis.stack_effect(each.opcode, argument)
        starts = [*starts[: min(depth, depth + effect)], *[i] * effect]
        depth += effect
        if depth < 0:
            return {None}
    return {None}


def _object_among(parts: list[list[dis.Instruction]]) -> set[str | None]:
    if len(parts) > 1 and _is_constant(parts[1]):
        return set()
    loads = parts[0] or parts[1][:1]  # Python 3.13 loads two variables by one instruction
    if loads[0].opname not in _VARIABLE_OPCODES:
        return {None}
    variable, *attributes = loads
    if any(each.opname != "LOAD_ATTR" for each in attributes):
        return {None}
    return {".".join([*_variables(variable)[:1], *[each.argval for each in attributes]])}


def _variables(instruction: dis.Instruction) -> tuple[str, ...]:
    """Return the one or two variables that an instruction loads or stores."""
    names = instruction.argval
    return names if isinstance(names, tuple) else (names,)


def _is_constant(part: list[dis.Instruction]) -> bool:
    return len(part) == 1 and part[0].opname == "LOAD_CONST"
