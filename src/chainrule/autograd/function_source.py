"""Generated source of custom functions: bind the arguments, run forward, record one node.

The public function is compiled from source, once for each signature. So Python binds the arguments
and raises its own errors, and a call has one frame and no loop over the arguments.
"""

from __future__ import annotations

import functools
import inspect
import keyword
import linecache
import sys
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.autograd.context import NOTHING, Context, seal_saved
from chainrule.autograd.function_node import (
    FunctionNode,
    InputMeta,
    attach_outputs,
    contains,
    output_meta,
    record_unseen_writes,
    warn_of_hidden_tensors,
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

_CALL = """\
def {title}({parameters}):
    $modes = $get_modes()
{inspection}
    $ctx = $Context()
    $ctx._names = {names}
    $ctx._edges = $edges = {edges}
    $ctx._saved = $NOTHING
    $ctx._dirty = $ctx._constant = ()
    $ctx._node = None
    $ctx._unsealed = False
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
        $node = $FunctionNode()
        $node.function = $function
        $node.ctx = $ctx
        $node.edges = $edges
        $node.input_meta = {metas}
        $node.outputs = ()
        $node.hooks = None
        $node.seq = $next_seq()
        $frame = $get_frame(1)
        while $INTERNAL[$frame.f_code.co_filename]:
            $frame = $frame.f_back
        $node.code, $node.instruction = $frame.f_code, $frame.f_lasti
    if (
        $output.__class__ is not $Tensor
        or $output._node is not None
        or $output._view is not None
        or $ctx._dirty
        or $ctx._constant
        or {is_argument}
    ):
        if $ctx._dirty:
            $record_unseen_writes($ctx._dirty, $last_write, $function.name)
        return $attach_outputs($ctx, $node, {values}, $output)
    if $node is not None:  # the usual case: forward returned a new tensor
        if $ctx._unsealed:
            $seal_saved($ctx, $node, {values}, ($output,))
        if $function.jvp_rule is not None:
            $node.single = $output_meta($output)
        if $output._array.dtype.kind in "fc":
            $output._node = $node
    return $output
"""

_INSPECT_ONE = """\
        if {name}.__class__ is $Tensor:
            $edge{i} = {name}._node if {name}._view is None else $current_node({name})
            $meta{i} = {name}._array.shape, {name}._array.dtype
        elif {name}.__class__ not in $PLAIN:
            ($edge{i},), ($meta{i},) = $inspect_arguments($function, ({name},))"""

_INSPECT_ALL = """\
    $values = {values}
    $edges = $metas = (None,) * len($values)
    if $modes is None or $modes.grad:
        $edges, $metas = $inspect_arguments($function, $values)"""

_COTANGENTS = """\


def $cotangents($node, $result, $run, $received):
    $edges = $node.edges
    if $result.__class__ is tuple and len($result) == {count}:
        {gradients} = $result
    elif $result.__class__ is dict and $known.issuperset($result):
        $get = $result.get
        {gradients} = {by_name}
    elif $result.__class__ is $Tensor and $edges.count(None) == {count} - 1:
        {same} = $result
    else:
        {gradients} = $node.by_argument($result)
    {edges} = $edges
    {metas} = $node.input_meta
    $usual = $run.xp is None is $run.receiving
{checks}
    return {gradients}
"""

_CHECK_ONE = """\
    if $edge{i} is None:
        $grad{i} = None
    elif $grad{i} is not None:
        $shape, $dtype = $meta{i}
        if (
            $usual
            and $grad{i}.__class__ is $Tensor
            and $grad{i}._array.dtype is $dtype is not $COMPLEX64
            and $dtype is not $COMPLEX128
            and $grad{i}._array.shape == $shape
        ):
            $grad{i} = $grad{i}._array
        else:
            $grad{i} = $node.cotangent($grad{i}, {i}, $run, $result, $received)"""

_COTANGENTS_OF_ALL = """\


def $cotangents($node, $result, $run, $received):
    return [
        $node.cotangent($grad, $i, $run, $result, $received)
        for $i, $grad in enumerate($node.by_argument($result))
    ]
"""

_VARIADIC = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD


def source_of(title: str, parameters: list[inspect.Parameter], own: str) -> str:
    """Return the source of a custom function with these parameters after `ctx`.

    It defines the call, and `$cotangents`, which returns the result of backward, checked, as the
    cotangent of each argument. `own` is the prefix of generated names.
    """
    names = [p.name for p in parameters]
    if names and not any(p.kind in _VARIADIC for p in parameters):
        source = _unrolled(names)
    else:
        source = _of_any_length(parameters)
    signature, arguments = _parameters_source(parameters), map(_argument_source, parameters)
    source = source.replace("{title}", title)
    source = source.replace("{parameters}", signature).replace("{arguments}", ", ".join(arguments))
    return source.replace("$", own)


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
        gradients=_tuple(grads),
        by_name=_tuple(f"$get({name!r})" for name in names),
        same=" = ".join(grads),
        edges=_tuple(edges),
        metas=_tuple(metas),
        checks="\n".join(_CHECK_ONE.format(i=i) for i in every),
    )
    return call + cotangents


def _of_any_length(parameters: list[inspect.Parameter]) -> str:
    """Return the source for any number of arguments, as far as it depends on the parameters."""
    call = _filled(
        _CALL,
        inspection=_INSPECT_ALL.format(values=_tuple(map(_value_source, parameters))),
        names=_tuple(map(_name_source, parameters)),
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
    return f"({''.join(f'{item}, ' for item in items)})"


def _parameters_source(parameters: list[inspect.Parameter]) -> str:
    """Return parameters as source; the default of the i-th is the variable `$default{i}`."""
    texts: list[str] = []
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not any(text.startswith("*") for text in texts):
            texts.append("*")
        texts.append(f"{_star(p)}{p.name}" + ("" if p.default is p.empty else f"=$default{i}"))
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


def _name_source(p: inspect.Parameter) -> str:
    """Return the names of the values of a parameter, as items of a tuple."""
    if p.kind is p.VAR_POSITIONAL:
        return f"*$indexed_names({p.name!r}, {p.name})"
    return f"*{p.name}" if p.kind is p.VAR_KEYWORD else repr(p.name)


def _star(p: inspect.Parameter) -> str:
    return "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""


# --- the function ---------------------------------------------------------------------------------


def make_call(
    function: AutogradFunction, parameters: list[inspect.Parameter]
) -> tuple[Any, Callable[..., Sequence[Any]]]:
    """Return a function of these parameters that runs and records `function.forward`.

    Also return what turns the result of backward into the cotangent of each argument.
    """
    own = "_" * (1 + max((len(p.name) - len(p.name.lstrip("_")) for p in parameters), default=0))
    usable = function.name.isidentifier() and not keyword.iskeyword(function.name)
    title = function.name if usable else "function"
    source, filename = source_of(title, parameters, own), f"<binder of {function.name}>"
    values: dict[str, Any] = {f"default{i}": p.default for i, p in enumerate(parameters)}
    values |= {"function": function, "forward": function.forward}
    values["names"] = tuple([p.name for p in parameters])
    values["known"] = function.argument_names
    scope = {f"{own}{name}": value for name, value in (_GLOBALS | values).items()}
    exec(_compiled(source, filename), scope)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    return scope[title], scope[f"{own}cotangents"]


@functools.lru_cache(maxsize=256)
def _compiled(source: str, filename: str) -> CodeType:
    """Return the code of a source; functions that are made again and again share it."""
    return compile(source, filename, "exec")


def _inspect_arguments(
    function: AutogradFunction, values: tuple[Any, ...]
) -> tuple[tuple[Edge, ...], tuple[InputMeta, ...]]:
    """Return edge and metadata of each argument; warn of containers that hold tensors."""
    edges: list[Edge] = []
    metas: list[InputMeta] = []
    for value in values:
        edge = meta = None
        if value.__class__ is Tensor or isinstance(value, Tensor):
            edge = value._node if value._view is None else current_node(value)
            meta = value._array.shape, value._array.dtype
        elif value.__class__ not in _PLAIN and isinstance(value, _CONTAINERS):
            warn_of_hidden_tensors(function.name, value)
        edges.append(edge)
        metas.append(meta)
    return tuple(edges), tuple(metas)


def _indexed_names(name: str, values: tuple[Any, ...]) -> list[str]:
    return [f"{name}[{i}]" for i in range(len(values))]


_PLAIN = frozenset([float, int, bool, str, type(None)])
_CONTAINERS = (list, tuple, dict)

_GLOBALS: dict[str, Any] = {
    "COMPLEX64": np.dtype(np.complex64),  # compared by identity, in a third of the time of `kind`
    "COMPLEX128": np.dtype(np.complex128),
    "Context": Context,
    "FunctionNode": FunctionNode,
    "INTERNAL": INTERNAL,
    "NOTHING": NOTHING,
    "PLAIN": _PLAIN,
    "Tensor": Tensor,
    "UNRECORDED": UNRECORDED,
    "attach_outputs": attach_outputs,
    "contains": contains,
    "current_node": current_node,
    "get_frame": sys._getframe,
    "get_modes": MODES.get,
    "indexed_names": _indexed_names,
    "inspect_arguments": _inspect_arguments,
    "next_seq": next_seq,
    "output_meta": output_meta,
    "record_unseen_writes": record_unseen_writes,
    "seal_saved": seal_saved,
    "set_modes": MODES.set,
    "write_log": write_log,
}
