"""Generated source of custom functions: bind the arguments, run forward, record one node.

The public function is compiled from source, once for each signature. So Python binds the arguments
and raises its own errors, and a call has one frame and no loop over the arguments.
"""

from __future__ import annotations

import dis
import functools
import inspect
import keyword
import linecache
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.autograd.context import NOTHING, UNMARKED, UNSEALED, Context, seal_saved
from chainrule.autograd.function_node import FunctionNode, InputMeta
from chainrule.autograd.function_outputs import (
    attach_outputs,
    check_unmarked,
    contains,
    note_computed,
    output_meta,
    record_unseen_writes,
)
from chainrule.autograd.location import INTERNAL
from chainrule.autograd.modes import MODES, UNRECORDED
from chainrule.autograd.node import Edge
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.versions import next_seq, write_log
from chainrule.autograd.views import current_node

if TYPE_CHECKING:
    from chainrule.autograd.function import AutogradFunction

# --- source ---------------------------------------------------------------------------------------
#
# `$` stands for a prefix that no parameter has, of all names that are not the user's.

_MADE = """\
def $made($function, $forward, $defaults, $names, $names_of):
    $seen = [None]
{functions}
    return {title}, $cotangents
"""

_CALL = """\
def {title}({parameters}):
    $modes = $get_modes()
{inspection}
    $ctx = $Context()
    $ctx._names = {names}
    $ctx._edges = $edges = {edges}
    $ctx._saved = $NOTHING
    $ctx._marks = $UNMARKED
    $ctx._node = None
    $last_write = $write_log.last
    $inner = $UNRECORDED if $modes is None else $modes.unrecorded()
    try:
        try:
            $set_modes($inner)
            $output = $forward($ctx, {arguments})
        finally:
            $set_modes($modes)
    except BaseException:  # see `interrupts`
        $set_modes($modes)
        raise
    $node = None
    if {has_edge}:
        if $write_log.last != $last_write:
            $check_unmarked($ctx, {values}, $output, $last_write, $function.name)
{note}
        $node = $FunctionNode()
        $node.function = $function
        $node.ctx = $ctx
        $node.edges = $edges
        $node.input_meta = {metas}
        $node.outputs = ()
        $node.hooks = None
        $node.seq = $next_seq()
        $frame = $get_frame(1)
        $code = $frame.f_code
        while $code is not $seen[0] and $INTERNAL[$code.co_filename]:
            $frame = $frame.f_back
            $code = $frame.f_code
        $node.code = $seen[0] = $code  # in a loop, the next one is the same
        $node.instruction = $frame.f_lasti
    if (
        $output.__class__ is not $Tensor
        or $output._node is not None
        or $output._view is not None
        or $ctx._marks is not $UNMARKED
        or {is_argument}
    ):
        if $ctx._marks[0]:
            $record_unseen_writes($ctx._marks[0], $last_write, $function.name)
        return $attach_outputs($ctx, $node, {values}, $output)
    if $node is not None:  # the usual case: forward returned a new tensor
        if $ctx._node is $UNSEALED:
            $seal_saved($ctx, $node, {values}, ($output,), $output)
        if $function.jvp_rule is not None:
            $node.single = $output_meta($output)
        $dtype = $output._array.dtype
        if $dtype is $FLOAT32 or $dtype is $FLOAT64 or $dtype.kind in "fc":
            $output._node = $node
    return $output
"""

_NOTE = """\
        for $value in $ctx.__dict__.values():
            if $value.__class__ not in $PLAIN:
                $note_computed($ctx, {values}, $output)
                break"""

_INSPECT_ONE = """\
        if {name}.__class__ is $Tensor:
            $edge{i} = {name}._node if {name}._view is None else $current_node({name})
            $array = {name}._array
            $meta{i} = $array.shape, $array.dtype
        elif {name}.__class__ not in $PLAIN:
            $edge{i}, $meta{i} = $inspect($function, {name})"""

_INSPECT_ALL = """\
    $values = {values}
    $edges = $metas = (None,) * len($values)
    if $modes is None or $modes.grad:
        $edges, $metas = [], []
        for $value in $values:
            $edge = $meta = None
            if $value.__class__ is $Tensor:
                $edge = $value._node if $value._view is None else $current_node($value)
                $array = $value._array
                $meta = $array.shape, $array.dtype
            elif $value.__class__ not in $PLAIN:
                $edge, $meta = $inspect($function, $value)
            $edges.append($edge)
            $metas.append($meta)
        $edges, $metas = tuple($edges), tuple($metas)"""

_COTANGENTS = """\

def $cotangents($node, $result, $run, $received):
    $edges = $node.edges
    if $result.__class__ is tuple or $result.__class__ is list:
        if len($result) == {count}:
            {gradients} = $result
        elif len($result) == 1 and $edges.count(None) == {others}:
            {same} = $result[0]
        else:
            {gradients} = $node.by_argument($result)
    elif $result.__class__ is $Tensor and $edges.count(None) == {others}:
        {same} = $result
    elif $result.__class__ is dict:
        $count = 0
        {same} = None
{by_name}
        if $count < len($result):
            {gradients} = $node.by_argument($result)
    else:
        {gradients} = $node.by_argument($result)
    {edges} = $edges
    {metas} = $node.input_meta
    $usual = $run.xp is None is $run.receiving
{checks}
    return {gradients}
"""

_NAME_ONE = """\
        if {name!r} in $result:
            $count += 1
            $grad{i} = $result[{name!r}]"""

_CHECK_ONE = """\
    if $edge{i} is None:
        $grad{i} = None
    elif $grad{i} is not None:
        $shape, $dtype = $meta{i}
        if (
            $usual
            and $grad{i}.__class__ is $Tensor
            and ($array := $grad{i}._array).dtype is $dtype is not $COMPLEX64
            and $dtype is not $COMPLEX128
            and $array.shape == $shape
        ):
            $grad{i} = $array
        else:
            $grad{i} = $node.cotangent($grad{i}, {i}, $run, $result, $received)"""

_COTANGENTS_OF_ALL = """\

def $cotangents($node, $result, $run, $received):
    $grads = $result
    if $result.__class__ is not tuple or len($result) != len($node.edges):
        $grads = $node.by_argument($result)
    $usual = $run.xp is None is $run.receiving
    $edges, $metas = $node.edges, $node.input_meta
    $found = []
    for $grad in $grads:
        $position = len($found)
        if $edges[$position] is None:
            $grad = None
        elif $grad is not None:
            $shape, $dtype = $metas[$position]
            if (
                $usual
                and $grad.__class__ is $Tensor
                and ($array := $grad._array).dtype is $dtype is not $COMPLEX64
                and $dtype is not $COMPLEX128
                and $array.shape == $shape
            ):
                $grad = $array
            else:
                $grad = $node.cotangent($grad, $position, $run, $result, $received)
        $found.append($grad)
    return $found
"""

_VARIADIC = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


def source_of(
    title: str, parameters: list[inspect.Parameter], own: str, keeps: bool = False
) -> str:
    """Return the source of a custom function with these parameters after `ctx`.

    It defines `$made`, which returns the call, and the function from the result of backward to the
    cotangent of each argument, checked. `own` is the prefix of generated names, and `keeps` tells
    that attributes of `ctx` may be set.
    """
    names = [p.name for p in parameters]
    if names and not any(p.kind in _VARIADIC for p in parameters):
        source = _unrolled(names)
    else:
        source = _of_any_length(parameters)
    signature, arguments = _parameters_source(parameters), map(_argument_source, parameters)
    values = "$values" if "$values =" in source else _tuple(names)
    source = _filled(
        source,
        note=_NOTE if keeps else "",
        values=values,
        title=title,
        parameters=signature,
        arguments=", ".join(arguments),
    )
    return _MADE.format(functions=textwrap.indent(source, "    "), title=title).replace("$", own)


def _unrolled(names: list[str]) -> str:
    """Return the source for a fixed number of arguments, as far as it depends on that."""
    every = range(len(names))
    edges, metas, grads = [[f"${each}{i}" for i in every] for each in ("edge", "meta", "grad")]
    inspections = [_INSPECT_ONE.format(i=i, name=name) for i, name in enumerate(names)]
    unset = " = ".join([*edges, *metas])
    head = f"    {unset} = None\n    if $modes is None or $modes.grad:"
    call = _filled(
        _CALL,
        inspection="\n".join([head, *inspections]),
        names="$names",
        edges=_tuple(edges),
        metas=_tuple(metas),
        has_edge=" or ".join(f"{edge} is not None" for edge in edges),
        is_argument=" or ".join(f"$output is {name}" for name in names),
        values=_tuple(names),
    )
    cotangents = _filled(
        _COTANGENTS,
        count=str(len(names)),
        others=str(len(names) - 1),
        gradients=_tuple(grads),
        by_name="\n".join(_NAME_ONE.format(i=i, name=name) for i, name in enumerate(names)),
        same=" = ".join(grads),
        edges=_tuple(edges),
        metas=_tuple(metas),
        checks="\n".join(_CHECK_ONE.format(i=i) for i in every),
    )
    return call + cotangents


def _of_any_length(parameters: list[inspect.Parameter]) -> str:
    """Return the source for any number of arguments, as far as it depends on the parameters."""
    variadic = [p for p in parameters if p.kind in _VARIADIC]
    call = _filled(
        _CALL,
        inspection=_INSPECT_ALL.format(values=_tuple(map(_value_source, parameters))),
        names=f"$names_of{_tuple(map(_count_source, variadic))}",
        edges="$edges",
        metas="$metas",
        has_edge="$edges.count(None) < len($edges)",
        is_argument="$contains($values, $output)",
        values="$values",
    )
    return call + _COTANGENTS_OF_ALL


def _filled(template: str, **pieces: str) -> str:
    for name, text in pieces.items():
        template = template.replace(f"{{{name}}}", text)
    return template


def _tuple(items: Iterable[str]) -> str:
    items = list(items)
    return f"({', '.join(items)}{',' * (len(items) == 1)})"


def _parameters_source(parameters: list[inspect.Parameter]) -> str:
    """Return parameters as source; the default of the i-th is ``$defaults[i]``."""
    texts: list[str] = []
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not any(text.startswith("*") for text in texts):
            texts.append("*")
        texts.append(f"{_star(p)}{p.name}" + ("" if p.default is p.empty else f"=$defaults[{i}]"))
        last = i + 1 == len(parameters) or parameters[i + 1].kind is not p.POSITIONAL_ONLY
        if p.kind is p.POSITIONAL_ONLY and last:
            texts.append("/")
    return ", ".join(texts)


def _argument_source(p: inspect.Parameter) -> str:
    """Return how a parameter is passed on to forward."""
    if p.kind is p.KEYWORD_ONLY:
        return f"{p.name}={p.name}"
    return f"{_star(p)}{p.name}"


def _value_source(p: inspect.Parameter) -> str:
    """Return the values of a parameter, as items of a tuple."""
    return f"*{p.name}.values()" if p.kind is p.VAR_KEYWORD else f"{_star(p)}{p.name}"


def _count_source(p: inspect.Parameter) -> str:
    """Return what the names of the values of a parameter depend on, as an item of a tuple."""
    return f"len({p.name})" if p.kind is p.VAR_POSITIONAL else f"*{p.name}"


def _star(p: inspect.Parameter) -> str:
    return "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""


# --- the function ---------------------------------------------------------------------------------


def make_call(
    function: AutogradFunction, parameters: list[inspect.Parameter]
) -> tuple[Any, Callable[..., Sequence[Any]]]:
    """Return a function of these parameters that runs and records `function.forward`.

    Also return what turns the result of backward into the cotangent of each argument.
    """
    usable = function.name.isidentifier() and not keyword.iskeyword(function.name)
    title = function.name if usable else "function"
    names = [p.name for p in parameters]
    own = "_" * (1 + max(len(name) - len(name.lstrip("_")) for name in (title, *names)))
    source = source_of(title, parameters, own, _may_set_attributes(function.forward))
    filename = f"<binder of {function.name}>"
    scope: dict[str, Any] = {}
    exec(_compiled(source, filename), _globals_of(own), scope)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    made: tuple[Any, Callable[..., Sequence[Any]]] = scope[f"{own}made"](
        function,
        function.forward,
        [p.default for p in parameters],
        tuple(names),
        _names_of(parameters),
    )
    return made


def _may_set_attributes(forward: Callable[..., Any]) -> bool:
    """Tell whether attributes of `ctx` may be set, as by ``ctx.mask = mask`` or ``keep(ctx, x)``.

    They aren't where the code reads `ctx` for nothing but its own methods.
    """
    code = getattr(forward, "__code__", None)
    if code is None or not code.co_varnames:
        return True
    ctx, following = code.co_varnames[0], [*dis.get_instructions(code)]
    for instruction, after in zip(following, [*following[1:], None], strict=True):
        read = instruction.argval == ctx or (
            isinstance(instruction.argval, tuple) and ctx in instruction.argval
        )
        if read and not (after and after.opname in _READS and after.argval in _OF_CONTEXT):
            return True
    return False


_READS = ("LOAD_ATTR", "LOAD_METHOD")
_OF_CONTEXT = frozenset(name for name in dir(Context) if not name.startswith("_"))


@functools.cache
def _globals_of(own: str) -> dict[str, Any]:
    """Return the global variables of generated functions, named with a prefix."""
    return {"__name__": __name__, **{f"{own}{name}": value for name, value in _GLOBALS.items()}}


@functools.lru_cache(maxsize=256)
def _compiled(source: str, filename: str) -> CodeType:
    """Return the code of a source; functions that are made again and again share it."""
    return compile(source, filename, "exec")


def _inspect(function: AutogradFunction, value: Any) -> tuple[Edge, InputMeta]:
    """Return edge and metadata of an argument; warn of containers that hold tensors."""
    if isinstance(value, Tensor):
        edge = value._node if value._view is None else current_node(value)
        return edge, (value._array.shape, value._array.dtype)
    if isinstance(value, _CONTAINERS):
        _warn_of_hidden_tensors(function.name, value)
    return None, None


def _names_of(parameters: list[inspect.Parameter]) -> Callable[..., tuple[str, ...]]:
    """Return the function from the number of ``*args`` and the keys of ``**kwargs`` to names."""

    @functools.lru_cache(maxsize=64)
    def names_of(*variable: Any) -> tuple[str, ...]:
        following, names = list(variable), list[str]()
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}[{i}]" for i in range(following.pop(0))]
            else:
                names += following if p.kind is p.VAR_KEYWORD else [p.name]
        return tuple(names)

    return names_of


_PLAIN = frozenset([float, int, bool, str, type(None)])
_CONTAINERS = (list, tuple, dict)

_GLOBALS: dict[str, Any] = {
    "COMPLEX64": np.dtype(np.complex64),  # compared by identity, in a third of the time of `kind`
    "COMPLEX128": np.dtype(np.complex128),
    "Context": Context,
    "FLOAT32": np.dtype(np.float32),
    "FLOAT64": np.dtype(np.float64),
    "FunctionNode": FunctionNode,
    "INTERNAL": INTERNAL,
    "NOTHING": NOTHING,
    "PLAIN": _PLAIN,
    "Tensor": Tensor,
    "UNMARKED": UNMARKED,
    "UNSEALED": UNSEALED,
    "UNRECORDED": UNRECORDED,
    "attach_outputs": attach_outputs,
    "check_unmarked": check_unmarked,
    "contains": contains,
    "current_node": current_node,
    "get_frame": sys._getframe,
    "get_modes": MODES.get,
    "inspect": _inspect,
    "next_seq": next_seq,
    "note_computed": note_computed,
    "output_meta": output_meta,
    "record_unseen_writes": record_unseen_writes,
    "seal_saved": seal_saved,
    "set_modes": MODES.set,
    "write_log": write_log,
}


def _warn_of_hidden_tensors(function: str, container: Any) -> None:
    """Warn if a container argument holds tensors that require grad, which get no gradient."""
    if _hides_tensors(container):
        warnings.warn(
            f"{function} got a {type(container).__name__} with tensors that require grad. Only "
            "direct tensor arguments are tracked: no gradient will flow to these",
            UserWarning,
            stacklevel=4,
        )


def _hides_tensors(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.requires_grad
    if isinstance(value, dict):
        return any(map(_hides_tensors, value.values()))
    return isinstance(value, list | tuple) and any(map(_hides_tensors, value))
