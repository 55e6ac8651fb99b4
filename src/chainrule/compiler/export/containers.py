"""Containers of arguments: whether a function's results depend on their order or type."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule import pytree
from chainrule.compiler.export.array_formulas import close
from chainrule.compiler.export.module import evaluate
from chainrule.compiler.export.symbolic_sizes import Example, Run, data_of, run
from chainrule.interrupts import without_warnings


class Needs(NamedTuple):
    """What is checked of containers."""

    order: bool  # of the keys of dicts
    kind: bool  # list or tuple


def find_needs(function: Any, example: Example, first: Run) -> Needs:
    """Call the function with other containers of the same arrays, and compare the results."""
    return Needs(*(_depends(function, example, first, turn) for turn in (_reversed, _swapped)))


def _reversed(node: Any) -> Any:
    """Return dicts with their keys in the opposite order."""
    if type(node) in (dict, OrderedDict):
        return type(node)(reversed([(key, _reversed(part)) for key, part in node.items()]))
    return [*map(_reversed, node)] if type(node) is list else _inside_tuple(node, _reversed)


def _swapped(node: Any) -> Any:
    """Return lists in the place of tuples, and tuples in the place of lists."""
    if type(node) in (list, tuple):
        return (list if type(node) is tuple else tuple)(map(_swapped, node))
    return {k: _swapped(part) for k, part in node.items()} if type(node) is dict else node


def _inside_tuple(node: Any, turn: Callable[[Any], Any]) -> Any:
    return tuple(map(turn, node)) if type(node) is tuple else node


def _depends(function: Any, example: Example, first: Run, turn: Callable[[Any], Any]) -> bool:
    args = tuple(map(turn, example.args))
    named = {key: turn(part) for key, part in example.kwargs.items()}
    kwargs = dict(reversed(named.items())) if turn is _reversed else named
    if repr((args, kwargs)) == repr((example.args, example.kwargs)):
        return False
    other = Example(args, kwargs)
    rng = np.random.default_rng(0)
    data = {id(array): _random_like(data_of(array), rng) for array in example.arrays}
    calls = [_with_data(each, data) for each in (example, other)]
    try:
        traced = without_warnings(run, function, args, kwargs)
        found = [
            without_warnings(evaluate, traces.body(), None, call)
            for traces, call in zip((first, traced), calls, strict=True)
        ]
    except Exception:  # the function asks for this container, or has no results for such numbers
        return True
    one, two = (dict(pytree.leaves(results[0])) for results in found)
    return one.keys() != two.keys() or not all(close(one[path], two[path]) for path in one)


def _with_data(example: Example, data: dict[int, Any]) -> Any:
    return example.call(lambda _, array: data[id(array)].copy())


def _random_like(array: Any, rng: Any) -> Any:
    if array.dtype.kind not in "fc":
        return array
    return (array + rng.uniform(0.1, 0.9, array.shape)).astype(array.dtype)
