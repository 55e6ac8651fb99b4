"""The operations of random programs, and how each is written as a line of code.

Each function takes the program so far and the numbers of an instruction, and adds a line.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from helpers.random_programs.source import (
    Draft,
    Instruction,
    Shape,
    Variable,
    Writer,
    reads_and_makes,
)

# --- leaves ---------------------------------------------------------------------------------------

_SHAPES: list[Shape] = [(), (2,), (3,), (2, 3), (3, 2), (1,), (1, 3), (2, 1), (2, 2), (2, 1, 3)]


def values(shape: Shape, seed: int) -> object:
    """Return nested lists of numbers between -2 and 2, on a grid so that some are equal or zero."""
    grid = np.random.default_rng(seed).integers(-8, 9, shape) / 4
    return grid.tolist()


def leaf(draft: Draft, i: Instruction) -> None:
    shape = _SHAPES[i.a % len(_SHAPES)]
    draft.make(f"lib.leaf({values(shape, i.b)})", shape)


def constant(draft: Draft, i: Instruction) -> None:
    shape = _SHAPES[i.a % len(_SHAPES)]
    draft.make(f"lib.tensor({values(shape, i.b)}, 'float64')", shape)


# --- new values -----------------------------------------------------------------------------------

_SMOOTH = [
    "-{}",
    "{} * 2",
    "{} * {}",
    "{}.sin()",
    "1 - {}",
    "{}.tanh()",
    "{} + 0.5",
    "{}.sigmoid()",
    "{} ** 2",
    "{}.tanh().exp()",
    "({} * {} + 1).sqrt()",
    "1 / ({} ** 2 + 1)",
    "{}.clone()",
    "{} / 2",
    "{} ** 3",
    "({} ** 2 + 0.5).log()",
]
_KINKED = ["{}.relu()", "{}.abs()", "{}.clamp(-1, 1)", "{}.clamp(min=0.5)", "{}.detach()"]


def _unary(sources: list[str]) -> Callable[[Draft, Instruction], None]:
    def write(draft: Draft, i: Instruction) -> None:
        x = draft.pick(i.a)
        source = sources[(i.b + 12 * i.c) % len(sources)].replace("{}", x.name)
        draft.make(source, x.shape, memory=x.memory if "detach" in source else None)

    return write


def _binary(sources: list[str]) -> Callable[[Draft, Instruction], None]:
    def write(draft: Draft, i: Instruction) -> None:
        x = draft.pick(i.a)
        y = draft.pick(i.b, lambda shape: _broadcast(x.shape, shape) is not None)
        shape = _broadcast(x.shape, y.shape)
        source = sources[i.c % len(sources)].format(x.name, y.name)
        draft.make(source, x.shape if shape is None else shape)

    return write


def _broadcast(a: Shape, b: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


_BINARY = ["{} * {}", "{} + {}", "{} - {}", "{} / ({} ** 2 + 1)"]
_KINKED_BINARY = [
    "lib.maximum({}, {})",
    "lib.minimum({}, {})",
    "lib.where({0} > {1}, {0}, {1})",
    "lib.where({1} * {1} > 1, {0}, {1})",
]


def matmul(draft: Draft, i: Instruction) -> None:
    x = draft.pick(i.a, lambda shape: len(shape) > 0)
    y = draft.pick(i.b, lambda shape: _product(x.shape, shape) is not None)
    shape = _product(x.shape, y.shape)
    if shape is None:
        draft.make(f"lib.outer({x.name}.reshape(-1), {y.name}.reshape(-1))", (_size(x), _size(y)))
    else:
        draft.make(f"{x.name} @ {y.name}", shape)


def _product(a: Shape, b: Shape) -> Shape | None:
    try:
        return np.matmul(np.zeros(a), np.zeros(b)).shape
    except ValueError:
        return None


def _size(x: Variable) -> int:
    return math.prod(x.shape)


_REDUCTIONS = ["sum", "mean", "prod", "logsumexp"]


def _reduction(names: list[str]) -> Callable[[Draft, Instruction], None]:
    def write(draft: Draft, i: Instruction) -> None:
        x = draft.pick(i.a)
        name = names[i.b % len(names)]
        if i.c % 3 == 0 and name != "logsumexp":
            draft.make(f"{x.name}.{name}()", ())
            return
        x = draft.pick(i.a, lambda shape: len(shape) > 0)
        if not x.shape:
            return
        dim, keep = i.d % len(x.shape), i.c % 3 == 1
        shape = tuple(
            1 if at == dim else length for at, length in enumerate(x.shape) if at != dim or keep
        )
        draft.make(f"{x.name}.{name}({dim}{', keepdim=True' if keep else ''})", shape)

    return write


def scan(draft: Draft, i: Instruction) -> None:
    x = draft.pick(i.a, lambda shape: len(shape) > 0)
    if x.shape:
        name = ["cumsum", "softmax", "log_softmax", "cumprod"][i.b % 4]
        draft.make(f"{x.name}.{name}({i.c % len(x.shape)})", x.shape)


def join(draft: Draft, i: Instruction) -> None:
    x = draft.pick(i.a)
    y = draft.pick(i.b, lambda shape: shape == x.shape)
    if i.c % 2 and x.shape:
        source = f"lib.cat([{x.name}, {y.name}], 0)"
        draft.make(source, (x.shape[0] + y.shape[0], *x.shape[1:]) if y.shape else ())
    else:
        draft.make(f"lib.stack([{x.name}, {y.name}], 0)", (2, *x.shape))


def pick_elements(draft: Draft, i: Instruction) -> None:
    """Index with a list of repeated indices, or with a mask: both copy."""
    x = draft.pick(i.a, lambda shape: len(shape) > 0 and shape[0] > 0)
    if x.shape and x.shape[0]:
        key, length = _copying_key(x.shape[0], i.b)
        draft.make(f"{x.name}[{key}]", (length, *x.shape[1:]))


def _copying_key(length: int, number: int) -> tuple[str, int]:
    if number % 2:
        mask = [(number >> 1 + at) % 2 == 0 for at in range(length)]
        return f"lib.tensor({mask})", sum(mask)
    rows = [number // 2 % length, (number + 1) // 3 % length, number // 2 % length]
    return f"{rows}", 3


# --- views ----------------------------------------------------------------------------------------


def view(draft: Draft, i: Instruction) -> None:
    x = draft.pick(i.a)
    _make_view(draft, x, i)
    if i.d % 2:
        _make_view(draft, draft.variables[-1], i._replace(b=i.b + i.d))


def _make_view(draft: Draft, x: Variable, i: Instruction) -> None:
    source, shape = _views(x)[i.b % len(_views(x))] if not x.shape else _view(x, i)
    draft.make(source, shape, memory=x.memory)


def _views(x: Variable) -> list[tuple[str, Shape]]:
    """Return the views that every tensor has."""
    return [
        (f"{x.name}.unsqueeze(0)", (1, *x.shape)),
        (f"{x.name}.expand(2, {', '.join(map(str, x.shape))})".replace(", )", ")"), (2, *x.shape)),
        (f"{x.name}[None]", (1, *x.shape)),
        (f"{x.name}.reshape(-1)", (_size(x),)),
        (f"{x.name}[...]", x.shape),
    ]


def _view(x: Variable, i: Instruction) -> tuple[str, Shape]:
    first, rest = x.shape[0], x.shape[1:]
    start = i.c % first if first else 0
    several: list[tuple[str, Shape]] = [
        *([(f"{x.name}[{start}]", rest)] if first else []),
        (f"{x.name}[{start}:]", (first - start, *rest)),
        (f"{x.name}.T" if len(x.shape) == 2 else f"{x.name}.transpose(0, -1)", _turned(x.shape)),
        (f"{x.name}[..., -1:]", (*x.shape[:-1], min(1, x.shape[-1]))),
        (f"{x.name}[::2]", (-(-first // 2), *rest)),
        (f"{x.name}.unsqueeze(-1)", (*x.shape, 1)),
        (f"{x.name}.reshape({first}, -1)", (first, math.prod(rest))),
        *([(f"{x.name}[..., {i.c % x.shape[-1]}]", x.shape[:-1])] if x.shape[-1] else []),
        *_views(x),
    ]
    return several[i.b % len(several)]


def _turned(shape: Shape) -> Shape:
    return (shape[-1], *shape[1:-1], shape[0]) if len(shape) > 1 else shape


def several_views(draft: Draft, i: Instruction) -> None:
    """Views of one operation: unbind, split, chunk."""
    x = draft.pick(i.a, lambda shape: len(shape) > 0 and shape[0] == 2)
    if not x.shape or x.shape[0] != 2:
        return
    call, part = [
        ("unbind(0)", x.shape[1:]),
        ("split(1)", (1, *x.shape[1:])),
        ("chunk(2)", (1, *x.shape[1:])),
    ][i.b % 3]
    draft.make(f"{x.name}.{call}", part, part, memory=x.memory)


# --- writes in place ------------------------------------------------------------------------------

_IN_PLACE = [
    "mul_(3)",
    "add_(1)",
    "sin_()",
    "neg_()",
    "zero_()",
    "tanh_()",
    "fill_(0.5)",
    "pow_(2)",
]
_KINKED_IN_PLACE = ["relu_()", "clamp_(-1, 1)", "abs_()"]


def _in_place(calls: list[str]) -> Callable[[Draft, Instruction], None]:
    def write(draft: Draft, i: Instruction) -> None:
        draft.do(f"{_target(draft, i).name}.{calls[i.b % len(calls)]}")

    return write


def _target(draft: Draft, i: Instruction, least: int = 0) -> Variable:
    """Return a tensor to write to; seldom a leaf, which is only refused."""
    return draft.pick(
        i.a,
        lambda shape: least == 0 or (len(shape) >= least and shape[0] > 0),
        lambda v: not v.leaf or i.d == 7,
    )


def in_place_binary(draft: Draft, i: Instruction) -> None:
    x = _target(draft, i)
    y = draft.pick(i.b, lambda shape: _broadcast(x.shape, shape) == x.shape)
    call = ["mul_", "add_", "copy_", "sub_"][i.c % 4]
    draft.do(f"{x.name}.{call}({_apart(x, y)})")


def augmented(draft: Draft, i: Instruction) -> None:
    x = _target(draft, i)
    y = draft.pick(i.b, lambda shape: _broadcast(x.shape, shape) == x.shape)
    # A name that is bound anew: the object stays the same, as the lines that follow notice.
    draft.do(f"{x.name} {'+-*'[i.c % 3]}= {_apart(x, y)}")


def _apart(x: Variable, y: Variable) -> str:
    """Return `y`, or a copy where it may overlap `x` in part: PyTorch refuses that."""
    return f"{y.name}.clone()" if y.memory == x.memory and y.name != x.name else y.name


def _bare(shape: Shape) -> Shape:
    """Return a shape without its leading ones, which broadcasting ignores."""
    return _bare(shape[1:]) if shape[:1] == (1,) else shape


def set_item(draft: Draft, i: Instruction) -> None:
    x = _target(draft, i, least=1)
    if not x.shape or not x.shape[0]:
        draft.do(f"{x.name}[...] = 0.5")
        return
    first, rest = x.shape[0], x.shape[1:]
    copying = _copying_key(first, 2 * (i.c // 2) + 1)
    key, shape = [
        (f"{i.c % first}", rest),
        (f"{i.c % first}:", (first - i.c % first, *rest)),
        ("...", x.shape),
        (copying[0], (copying[1], *rest)),
        ("::2", (-(-first // 2), *rest)),
        ("..., 0", x.shape[:-1]) if x.shape[-1] else ("...", x.shape),
        (f"[{', '.join(map(str, reversed(range(first))))}]", x.shape),
    ][i.c % 7]
    y = draft.pick(i.b, lambda candidate: _broadcast(shape, _bare(candidate)) == shape)
    fits = _broadcast(shape, _bare(y.shape)) == shape
    draft.do(f"{x.name}[{key}] = {_apart(x, y) if fits and i.d % 4 else i.d / 2}")


# --- custom functions -----------------------------------------------------------------------------


def custom(draft: Draft, i: Instruction) -> None:
    x = draft.pick(i.a)
    y = draft.pick(i.b, lambda shape: shape == x.shape)
    kind = i.c % 5
    if kind == 0:
        draft.make(f"cube({x.name})", x.shape)
    elif kind == 1 and y.shape == x.shape:
        draft.make(f"product_and_sum({x.name}, {y.name})", x.shape, x.shape)
    elif kind == 2:
        draft.make(f"with_mask({x.name})", x.shape, x.shape)
    elif kind == 3:
        draft.do(f"triple_in_place({_target(draft, i).name})")
    else:
        draft.make(f"unchanged({x.name})", x.shape, memory=x.memory)


# --- hooks and flags ------------------------------------------------------------------------------


def hook(draft: Draft, i: Instruction) -> None:
    name = draft.pick(i.a).name
    # PyTorch crashes when one of several outputs, told to retain its gradient, is written to.
    retaining = draft.pick(i.a, only=lambda v: not v.one_of_several).name
    draft.do(
        [
            f"{name}.register_hook(lambda g: g * 2)",
            f"{name}.register_hook(lambda g: note('{name}', g))",
            f"{retaining}.retain_grad()",
            f"{name}.register_hook(lambda g: g + 1)",
        ][i.b % 4]
    )


def flag(draft: Draft, i: Instruction) -> None:
    x = draft.pick(i.a)
    kind = i.b % 6
    if kind in (0, 3):
        draft.make(f"{x.name}.detach().clone().requires_grad_()", x.shape)
    elif kind == 1:
        draft.do(f"look({x.name})")
    elif kind == 2 and len(draft.variables) > 3:
        draft.variables.remove(x)
        draft.do(f"del {x.name}")
    elif kind == 4:
        alone = not x.leaf and all(v.memory != x.memory or v is x for v in draft.variables)
        draft.do(f"{x.name}.detach_()" if alone else f"look({x.name})")
    else:
        draft.do(f"{x.name}.grad = None")


def unrecorded(draft: Draft, i: Instruction) -> None:
    """Write another instruction's line under no_grad."""
    inner = [_in_place(_IN_PLACE), in_place_binary, _binary(_BINARY), set_item, view, several_views]
    before = len(draft.lines)
    inner[i.d % len(inner)](draft, i)
    draft.lines[before:] = [f"with lib.no_grad(): {line}" for line in draft.lines[before:]]
    if i.d % len(inner) >= 4 and len(draft.lines) > before:
        # PyTorch says that such a view requires grad, though it leads nowhere: only write to it.
        _, made = reads_and_makes(draft.lines[-1])
        draft.do(f"{made[0]}.mul_(2)")
        draft.do(f"del {', '.join(made)}")
        del draft.variables[-len(made) :]


# --- passes ---------------------------------------------------------------------------------------

_MODES = ["retain_graph=True", "", "retain_graph=True", "create_graph=True"]


def backward(draft: Draft, i: Instruction) -> None:
    x, y = draft.pick(i.a), draft.pick(i.b)
    # PyTorch makes a non-leaf in `inputs` retain its gradient: leaves only.
    leaf = draft.pick(i.b, only=lambda v: v.leaf)
    mode = _MODES[i.c % 4]
    comma = f", {mode}" if mode else ""
    draft.do(
        [
            f"weigh({x.name}).backward({mode})",
            f"{x.name}.backward(lib.ones_like({x.name}){comma})",
            f"lib.backward([{x.name}.sum(), {y.name}.sum()]{comma})",
            f"({x.name} * {x.name}).sum().backward({mode})",
            f"{x.name}.sum().backward({mode})"
            if not leaf.leaf
            else f"{x.name}.sum().backward(inputs=[{leaf.name}]{comma})",
            f"{x.name}.backward({mode})",
        ][i.d % 6]
    )


def gradient(draft: Draft, i: Instruction) -> None:
    """Take a gradient with lib.grad; with create_graph, compute with it."""
    x, y = draft.pick(i.a), draft.pick(i.b)
    if i.c % 2:
        call = f"lib.grad([{x.name}.sum()], [{y.name}], {_MODES[2 + i.d % 2]})[0]"
        draft.make(f"{call}.detach().clone()", y.shape)
    else:
        leaf = draft.pick(i.b, only=lambda v: v.leaf)
        call = f"lib.grad([weigh({x.name} ** 2)], [{leaf.name}], create_graph=True)[0]"
        draft.make(f"{call} * {leaf.name}", leaf.shape)


# --- the sets of operations -----------------------------------------------------------------------

SMOOTH: dict[str, Writer] = {
    "leaf": Writer(leaf, 2),
    "constant": Writer(constant, 2),
    "unary": Writer(_unary(_SMOOTH), 4),
    "binary": Writer(_binary(_BINARY), 4),
    "matmul": Writer(matmul),
    "reduction": Writer(_reduction(_REDUCTIONS), 2),
    "scan": Writer(scan),
    "join": Writer(join),
    "pick": Writer(pick_elements),
    "view": Writer(view, 6),
    "several_views": Writer(several_views, 2),
    "in_place": Writer(_in_place(_IN_PLACE), 3),
    "in_place_binary": Writer(in_place_binary, 4),
    "augmented": Writer(augmented),
    "set_item": Writer(set_item, 4),
}
"""Operations that are differentiable everywhere, with true derivatives."""

EVERYTHING: dict[str, Writer] = SMOOTH | {
    "kinked": Writer(_unary(_KINKED), 2),
    "kinked_binary": Writer(_binary(_KINKED_BINARY)),
    "extremum": Writer(_reduction(["amax", "amin"])),
    "kinked_in_place": Writer(_in_place(_KINKED_IN_PLACE)),
    "custom": Writer(custom, 3),
    "hook": Writer(hook, 3),
    "flag": Writer(flag, 4),
    "unrecorded": Writer(unrecorded, 2),
    "backward": Writer(backward, 4),
    "gradient": Writer(gradient, 2),
}
