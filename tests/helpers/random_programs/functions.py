"""Random functions of tensors and numbers, drawn with a seed: slices, loops, writes, trees.

A function is a list of statements, each of which has run eagerly when it was added, and a tree of
the variables that it returns. Statements that raise, or whose values get too large, are left out.
"""

from __future__ import annotations

import itertools
import linecache
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import chainrule as cr
from helpers.random_programs.run import _OURS as CUSTOM

MAX_SIZE = 64
"""Largest number of elements of a variable."""

MAX_MAGNITUDE = 1e3
"""Largest absolute value of an element, so that rounding stays small."""

_VARIABLE = re.compile(r"\b[xt]\d+\b")


class Function(NamedTuple):
    """A random function: its tensor arguments as arrays, its numbers, statements and result."""

    arrays: dict[str, Any]
    numbers: dict[str, list[Any]]  # the values of each number in successive calls
    statements: tuple[str, ...]
    returned: str

    @property
    def source(self) -> str:
        """The definition of the function, `f`."""
        body = [line for text in self.statements for line in text.splitlines()]
        lines = [*body, f"return {self.returned}"]
        parameters = ", ".join([*self.arrays, *self.numbers])
        return "\n".join([f"def f({parameters}):", *(f"    {line}" for line in lines)]) + "\n"

    @property
    def eps(self) -> float:
        """The eps of the coarsest floating-point dtype that may occur in the function."""
        text = self.source.partition(":")[2]
        used = {name: a.dtype for name, a in self.arrays.items() if re.search(rf"\b{name}\b", text)}
        dtypes = {dtype for dtype in used.values() if dtype.kind in "fc"}
        integers = re.search(r"\.(int|bool|float|arg\w+|count_nonzero|sum)\(", text)
        if integers or any(dtype.kind not in "fc" for dtype in used.values()):
            dtypes.add(np.dtype(np.float32))  # of an integer and a Python float
        dtypes |= {np.dtype(np.float16)} if "float16" in text else set()
        return max((float(np.finfo(d).eps) for d in dtypes), default=2e-16)

    def define(self) -> Callable[..., Any]:
        """Return the function."""
        name = f"<random function {next(_COUNT)}>"
        linecache.cache[name] = len(self.source), None, self.source.splitlines(True), name
        space: dict[str, Any] = {"cr": cr, "np": np, **CUSTOM}
        exec(compile(self.source, name, "exec"), space)
        function: Callable[..., Any] = space["f"]
        return function

    def tensors(self) -> list[Any]:
        """Return new arguments; those of floating point require grad."""
        found = [cr.tensor(array.copy()) for array in self.arrays.values()]
        return [t.requires_grad_() if t.dtype.kind in "fc" else t for t in found]

    def number_calls(self) -> list[list[Any]]:
        """Return the numbers of each call."""
        return [list(values) for values in zip(*self.numbers.values(), strict=True)] or [[]]

    def __str__(self) -> str:
        """Return a script that defines the function and its arguments."""
        lines = ["import numpy as np", "import chainrule as cr", ""]
        for name in CUSTOM:
            if any(f"{name}(" in text for text in self.statements):
                lines.append(
                    f"from helpers.random_programs.run import _OURS; {name} = _OURS[{name!r}]"
                )
        lines.append(self.source)
        for name, array in self.arrays.items():
            grad = ".requires_grad_()" if array.dtype.kind in "fc" else ""
            text = f"np.array({array.tolist()}, np.{array.dtype.name})"
            lines.append(f"{name} = cr.tensor({text}){grad}".replace("nan", "np.nan"))
        lines += [f"# {name}: {values}" for name, values in self.numbers.items()]
        return "\n".join(lines)


_COUNT = itertools.count()


def reduced(function: Function) -> Iterator[Function]:
    """Yield functions that lack a part of another: a returned variable or some statements."""
    names = _VARIABLE.findall(function.returned)
    if len(names) > 1 or function.returned != names[0]:
        yield from (function._replace(returned=name) for name in names)
    else:  # an earlier variable
        made = [*function.arrays, *(n for text in function.statements for n in _made(text))]
        yield from (function._replace(returned=n) for n in made[: made.index(names[0])])
    for i in reversed(range(len(function.statements))):
        kept = function.statements[:i]
        known = {*function.arrays, *(n for text in kept for n in _made(text))}
        for text in function.statements[i + 1 :]:
            if set(_VARIABLE.findall(text)) - set(_made(text)) <= known:
                kept = (*kept, text)
                known |= set(_made(text))
        if set(_VARIABLE.findall(function.returned)) <= known:
            yield function._replace(statements=kept)
    used = " ".join([*function.statements, function.returned])
    for field in ("arrays", "numbers"):
        held = getattr(function, field)
        needed = {name: v for name, v in held.items() if re.search(rf"\b{name}\b", used)}
        if len(needed) < len(held) and (field == "numbers" or needed):
            yield function._replace(**{field: needed})


def _made(text: str) -> list[str]:
    left, equals, _ = text.partition(" = ")
    names = left.split(", ")
    return names if equals and all(_VARIABLE.fullmatch(n) for n in names) else []


# --- drawing --------------------------------------------------------------------------------------


class Draft:
    """A function as it is being written, with the values of its variables."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        numbers = np.random.default_rng(seed)
        r = self.random
        self.count = 0
        self.arrays = {}
        shapes = r.choice([[(3,), (2, 3)], [(2, 3, 3), (3,)], [(4,), (2, 4), (1, 4)], [(2, 2), ()]])
        for i, shape in enumerate(shapes):
            dtype = r.choice(["float64"] * 6 + ["float32", "complex128"])
            values = numbers.integers(-6, 7, shape) / 4 + numbers.choice([0, 0.1], shape)
            if dtype[0] == "c":
                values = values + 1j * numbers.integers(-4, 5, shape) / 4
            self.arrays[f"x{i}"] = np.asarray(values, dtype)
        self.arrays[f"x{len(shapes)}"] = numbers.integers(-3, 4, shapes[0])
        self.numbers = {"k": r.choice(_NUMBERS)} if r.random() < 0.6 else {}
        self.statements: list[str] = []
        self.values: dict[str, Any] = {}
        self._run()

    def draw(self, length: int) -> Function:
        """Add statements, and return the function."""
        r = self.random
        while len(self.statements) < length:
            write = r.choices([w for w, _ in WRITERS], [weight for _, weight in WRITERS])[0]
            before = self.statements[:], dict(self.values), self.count
            try:
                write(self)
                works = self._run()
            except (IndexError, LookupError):  # nothing to apply it to
                works = False
            if not works:
                self.statements, self.values, self.count = before
        return Function(self.arrays, self.numbers, tuple(self.statements), self._result())

    def _result(self) -> str:
        r = self.random
        names = [n for n in self.values if n[0] == "t"]
        chosen = names[-2:] + r.sample(names[:-2], min(2, len(names[:-2])))
        a, *rest = chosen
        b, c = (rest * 2 + [a, a])[:2]
        return r.choice([a, f"({a}, {b})", f"[{a}, {b}]", f"{{'p': {a}, 'q': [{b}, ({c},)]}}"])

    def _run(self) -> bool:
        names = [n for text in self.statements for n in _made(text)]
        function = Function(
            self.arrays,
            self.numbers,
            tuple(self.statements),
            "{" + ", ".join(f"{n!r}: {n}" for n in [*self.arrays, *names]) + "}",
        )
        try:
            with np.errstate(all="ignore"):
                for call in function.number_calls():
                    values = function.define()(*function.tensors(), *call)
                    sums = [t.abs().sum() for t in values.values() if t.requires_grad]
                    if sums:
                        cr.autograd_backward(sums)
        except Exception:
            return False
        sizes = [v.size for v in map(np.asarray, (t.detach() for t in values.values()))]
        new = [t.detach().numpy() for t in values.values()]
        if max(sizes) > MAX_SIZE or not all(_is_moderate(v) for v in new):
            return False
        self.values = {n: v.detach() for n, v in values.items()}
        return True

    # --- parts of statements ---

    def pick(self, kinds: str = "fc", only: Callable[[Any], bool] = lambda t: True) -> str:
        """Return a variable of these dtype kinds, a recent one rather than an old one."""
        found = [n for n, t in self.values.items() if t.dtype.kind in kinds and only(t)]
        return self.random.choice(found[-3:] + found)

    def make(self, source: str, count: int = 1) -> None:
        """Add an assignment of new variables."""
        names = [f"t{self.count + i}" for i in range(count)]
        self.count += count
        self.statements.append(f"{', '.join(names)} = {source}")

    def constant(self) -> str:
        """Return a literal, or the number among the arguments."""
        return self.random.choice(CONSTANTS + ["k", "-k", "(-k)"] * 2 * bool(self.numbers))

    def index(self, shape: tuple[int, ...]) -> str:
        """Return slices, numbers, None and ellipses for a shape."""
        r, parts = self.random, []
        for length in shape[: r.randint(0, len(shape))]:
            ends = ["", "", *map(str, range(-length, length + 1))]
            step = r.choice(["", "::-1", "::-2", "::2", f":{r.choice(ends)}:-1"])
            parts.append(
                r.choice(
                    [
                        f"{r.choice(ends)}:{r.choice(ends)}",
                        step or ":",
                        str(r.randrange(-length, length)) if length else ":",
                    ]
                )
            )
        if r.random() < 0.2:
            parts.insert(r.randint(0, len(parts)), "None")
        if r.random() < 0.3:
            parts.append("...")
        return ", ".join(parts) or "..."


def _is_moderate(v: Any) -> bool:
    finite = np.abs(v[np.isfinite(v)]) if v.dtype.kind in "fc" else np.abs(v.astype(float))
    return bool(finite.size >= v.size * 0.5 and finite.max(initial=0) < MAX_MAGNITUDE)


_NUMBERS: list[list[Any]] = [
    [2, -1.5, 2, True],
    [-0.0, 0.0, -2, 3.0],
    [1, 1.0, True, -1],
    [-2.0, 0.5, -2.0, 2],
]
CONSTANTS = [
    "2",
    "-1",
    "-2.0",
    "0.5",
    "-0.0",
    "0.0",
    "-1.5",
    "1",
    "True",
    "-3",
    "(-2.)",
    "(-0.5)",
    "3",
    "-1e-3",
]
_COMPLEX = ["-1j", "(0.5-2j)", "complex(-0.0, -1)", "complex(2, -0.0)", "(-1+0j)"]
_FORMS = [
    "{a} + {b}",
    "{a} - {b}",
    "{a} * {b}",
    "{a} / ({b} * {b} + 1)",
    "-{a} * {b}",
    "{a} - (-{b})",
]
_POWERS = [
    "{c} ** {i}",
    "({c}) ** {i}",
    "-{a} ** 2",
    "(-{a}) ** 2",
    "{a} ** {c}",
    "pow({c}, {i})",
    "2 ** -{i}",
]
_UNARY = [
    "{a}.sin()",
    "{a}.tanh()",
    "{a}.exp()",
    "{a}.sigmoid()",
    "{a}.square()",
    "{a}.clone()",
    "-{a}",
    "{a}.abs()",
    "{a}.relu()",
    "{a}.clamp(-1,1)",
    "{a}.sign()",
    "{a}.floor()",
    "{a}.sinh()",
    "{a}.softmax(-1)",
    "{a}.expm1()",
    "{a}.atan()",
    "cr.log1p({a}*{a})",
    "cr.hypot({a},{a})",
    "{a}.norm()",
    "{a}.std()",
    "{a}.round()",
    "+{a}",
    "cr.nn.functional.gelu({a})",
    "cr.nn.functional.softplus({a})",
    "{a}.cos()",
    "{a}.reciprocal()",
    "{a}.sqrt()",
]


def _arithmetic(d: Draft) -> None:
    r = d.random
    a = d.pick()
    b = r.choice([d.pick(), d.constant(), d.constant()])
    d.make(r.choice(_FORMS).format(a=a, b=b) if r.random() < 0.5 else _tree(d, 3))


def _tree(d: Draft, depth: int) -> str:
    """Return an expression of operators, variables and signed constants."""
    r = d.random
    if depth == 0 or r.random() < 0.2:
        return r.choice([d.pick("f"), d.pick("fi"), d.constant()])
    a, b = _tree(d, depth - 1), _tree(d, depth - 1)
    form = r.choice(
        ["({a} + {b})", "({a} - {b})", "{a} * {b}", "-{a}", "({a}) * {b}", "({a} + {b}) % 3",
         "({a}) // 2", "{a} - {b}", "({a}) / (1 + abs({b}))", "(-{a})", "({a}) ** 2"]
    )  # fmt: skip
    return form.format(a=a, b=b)


def _power(d: Draft) -> None:
    source = d.random.choice(_POWERS)
    d.make(source.format(a=d.pick("f"), c=d.constant(), i=d.pick("i")))


def _unary(d: Draft) -> None:
    d.make(d.random.choice(_UNARY).format(a=d.pick("f")))


def _slice(d: Draft) -> None:
    name = d.pick("fci", lambda t: t.ndim > 0)
    d.make(f"{name}[{d.index(d.values[name].shape)}]")


def _shape(d: Draft) -> None:
    r, name = d.random, d.pick("fc", lambda t: t.ndim > 0)
    n = d.values[name].ndim
    i, j = r.randrange(-n, n), r.randrange(-n, n)
    forms = [
        f".transpose({i}, {j})", ".reshape(-1)", f".flip({i})",
        f".roll({r.choice([1, -1, 2])}, {i})",
        ".T", f".unsqueeze({i})", f".expand(2, *{name}.shape)", ".tile(2)",
        f".repeat_interleave(2, {i})",
        f".swapaxes({i}, {j}).reshape(-1)", f".movedim({i}, {j})", f".diff(dim={i})",
    ]  # fmt: skip
    d.make(name + r.choice(forms))


def _reduce(d: Draft) -> None:
    r, name = d.random, d.pick("f", lambda t: t.ndim > 0)
    i = r.randrange(-d.values[name].ndim, d.values[name].ndim)
    calls = [
        "sum",
        "mean",
        "prod",
        "amax",
        "amin",
        "logsumexp",
        "var",
        "std",
        "median(0)[0]",
        "argmax",
        "argmin",
        "count_nonzero",
    ]
    call = r.choice(calls)
    keep = ", keepdim=True" if r.random() < 0.4 and call != "count_nonzero" else ""
    d.make(f"{name}.{call}" if "(" in call else f"{name}.{call}({i}{keep})")


def _cumulative(d: Draft) -> None:
    r, name = d.random, d.pick("f", lambda t: t.ndim > 0)
    i = r.randrange(-d.values[name].ndim, d.values[name].ndim)
    form = r.choice(
        ["{0}.cumsum({1})", "{0}.cumprod({1})", "{0}.logcumsumexp({1})", "cr.cummax({0}, {1})[0]",
         "cr.cummin({0}, {1})[0]", "{0}.sort({1})[0]", "{0}.flip({1}).cumsum({1})",
         "{0}.argsort({1})", "cr.trapezoid({0}, dim={1})"]
    )  # fmt: skip
    d.make(form.format(name, i))


def _einsum(d: Draft) -> None:
    r = d.random
    names = [d.pick("fc") for _ in range(r.randint(1, 2))]
    sizes: dict[str, int] = {}
    terms = []
    for name in names:
        term = ""
        for length in d.values[name].shape:
            fitting = [c for c in "ijkl" if sizes.setdefault(c, length) == length]
            term += r.choice(fitting)
        terms.append(term)
    used = sorted(set("".join(terms)))
    out = "".join(r.sample(used, r.randint(0, len(used))))
    d.make(f"cr.einsum('{','.join(terms)}->{out}', {', '.join(names)})")


def _pick(d: Draft) -> None:
    r, name = d.random, d.pick("fc", lambda t: t.ndim > 0 and t.shape[0] > 0)
    t = d.values[name]
    rows = [r.randrange(-t.shape[0], t.shape[0]) for _ in range(r.randint(1, 3))]
    last = [r.randrange(-t.shape[-1], t.shape[-1]) for _ in rows] if t.shape[-1] else rows
    mask = [r.random() < 0.6 for _ in range(t.shape[0])]
    dim = r.randrange(t.ndim)
    forms = [
        f"[{rows}]", f"[..., {last}]", f"[cr.tensor({rows})]", f"[{rows}, ..., {last}]",
        f"[{mask}]",
        f"[cr.tensor({mask})]", f"[None, {rows}]",
        f".index_select(0, cr.tensor({[r % len(t) for r in rows]}))",
        f"[[{rows}, {rows}]]", f".take_along_dim({name}.argsort({dim}), {dim})", f"[{rows}, ::-1]",
        f".gather({dim}, {name}.argsort({dim}))",
    ]  # fmt: skip
    d.make(name + r.choice(forms))


def _where(d: Draft) -> None:
    r, a = d.random, d.pick("f")
    b, c = r.choice([d.pick("f"), d.constant()]), d.constant()
    forms = [
        f"cr.where({a} > {b}, {a}, {c})", f"{a}.masked_fill({a} <= {c}, {c})",
        f"cr.maximum({a}, {a}*0)",
        f"cr.where(({a} > {c}) & ({a} < 1), {b}, -{a})", f"({a} != {c}).sum()",
        f"({a} > {b}) * {a}",
        f"cr.where(cr.isnan({a}), 0., {a})", f"~({a} >= {c}) | ({a} == {b})",
        f"cr.fmin({a}, {a} * {c})",
        f"cr.copysign({a}, {a} * {c})", f"cr.heaviside({a}, {a}*0+0.5)",
    ]  # fmt: skip
    d.make(r.choice(forms))


def _matrices(d: Draft) -> None:
    r = d.random
    a = d.pick("f", lambda t: t.ndim >= 2 and min(t.shape[-2:]) > 0)
    definite = f"({a} @ {a}.mT + 2 * cr.eye({a}.shape[-2], dtype={a}.dtype))"
    forms = [
        "cr.linalg.inv({s})", "cr.linalg.cholesky({s})", "cr.linalg.det({s})",
        "cr.linalg.slogdet({s})[1]",
        "cr.linalg.solve({s}, {a})", "cr.linalg.eigvalsh({s})", "cr.linalg.svdvals({a})",
        "{a} @ {a}.mT",
        "{a}.mT @ {a}", "{a}.tril()", "{a}.triu(1)", "{a}.diagonal(0, -2, -1)",
        "cr.linalg.matrix_norm({a})",
        "cr.linalg.qr({s})[1].abs()", "cr.linalg.matrix_power({s}, -1)", "cr.linalg.eigh({s})[0]",
        "cr.linalg.matrix_exp({s} * 0.1)", "cr.linalg.pinv({s})", "cr.linalg.lstsq({s}, {a})[0]",
        "cr.linalg.cond({s})", "cr.linalg.vector_norm({a}, dim=-1)", "cr.cdist({a}, {a} + 1.)",
    ]  # fmt: skip
    d.make(r.choice(forms).format(a=a, s=definite))


def _product(d: Draft) -> None:
    a = d.pick("fc", lambda t: t.ndim > 0)
    last = d.values[a].shape[-1]
    b = d.pick("fc", lambda t: t.ndim > 0 and t.shape[-min(2, t.ndim)] == last)
    d.make(
        d.random.choice(["{} @ {}", "cr.matmul({}, {})", "cr.tensordot({}, {}, 1)"]).format(a, b)
    )


def _fourier(d: Draft) -> None:
    r, a = d.random, d.pick("fc", lambda t: t.ndim > 0 and t.shape[-1] > 0)
    real = d.values[a].dtype.kind == "f"
    forms = ["fft({a})", "ifft({a})", "fft({a}, n=5)", "fftshift({a})", "fftn({a})",
             "fft({a}, dim=0)",
             "fft({a}, norm='ortho')", "irfft({a}, n=4)", "hfft({a}, n=4)"]  # fmt: skip
    forms += ["rfft({a})", "rfft({a}, n=3)", "rfftn({a})", "ihfft({a})"] * 2 * real
    d.make("cr.fft." + r.choice(forms).format(a=a))


def _complex(d: Draft) -> None:
    r = d.random
    kinds = [t for t in d.values.values() if t.dtype.kind == "c"]
    if not kinds or r.random() < 0.3:
        a = d.pick("f")
        form = r.choice(
            ["cr.complex({a}, {a} * 2.)", "{a} * {c}", "cr.polar({a}, {a})", "{a} + {c}"]
        )
    else:
        a = d.pick("c")
        form = r.choice(
            ["{a}.real", "{a}.imag", "{a}.conj()", "{a}.abs()", "{a} * {c}", "{a} - {c}",
            "{a}.angle()",
             "cr.view_as_real({a})", "{a}.exp()", "{a} * {a}.conj()", "{a} / (2 + {a}.abs())",
             "{a} ** 2",
             "({c}) * {a} + {c}", "-{a}", "{a}.sin()", "{a}.sum()"]
        )  # fmt: skip
    d.make(form.format(a=a, c=r.choice(_COMPLEX)))


def _loop(d: Draft) -> None:
    r = d.random
    a = d.pick("f")
    c = d.pick("f", lambda t: t.dtype == d.values[a].dtype)
    step = r.choice(["c * 0.5 + x.sin()", "(c - x).tanh()", "c * x * {k} * 0.1",
                     "c + {w}.sum() * x",
                     "-c * 0.5 - -x", "cr.where(x > 0, c, c * 0.5)",
                     "(c * {k}).tanh() + x[()]"])  # fmt: skip
    step = step.format(k=d.constant(), w=c)
    xs = d.pick("f", lambda t: t.ndim > 0 and t.shape[0] > 0)
    carry = f"{xs}[0] * 0.5"
    options = r.choice(["", "", ", reverse=True", ", checkpoint=True"])
    bound = r.choice(["(c * c).sum() > 0.01", "c.abs().max() > 0.1"])
    out = r.choice(["c", "c * x", "(c + x).sin()"])
    more = f"(c * 0.9).sin() + {c}.sum()"
    forms: list[tuple[str, int]] = [
        (f"cr.scan(lambda c, x: ({step}, {out}), {carry}, {xs}{options})", 2),
        (f"cr.cond({a}.sum() > {d.constant()}, lambda v: v * 2, lambda v: v.sin(), {a})", 1),
        (f"cr.cond({c}.sum() > 0, lambda: {a} * {c}.sum(), lambda: -{a})", 1),
        (f"cr.while_loop(lambda c: {bound}, lambda c: c * 0.25, {a})", 1),
        (f"cr.scan(lambda c, x: ({more}, c), {a}, length=3)", 2),
    ]
    if r.random() < 0.3:
        name = f"t{d.count}"
        d.make(
            f"{a}\nfor i in range({r.choice([3, 9])}):\n    {name} = ({name} * 0.7 - i * 0.1).sin()"
        )
    else:
        d.make(*r.choice(forms))


def _write(d: Draft) -> None:
    r, a = d.random, d.pick("f", lambda t: t.ndim > 0 and t.size > 0)
    name, t = f"t{d.count}", d.values[a]
    lines = [f"{a}.clone()"]
    for _ in range(r.randint(1, 2)):
        b, c = d.pick("f"), d.constant()
        key = d.index(t.shape)
        rows = [r.randrange(-t.shape[0], t.shape[0]) for _ in range(2)]
        lines.append(
            r.choice(
                [f"{name}[{key}] = {c}", f"{name}[{key}] = {b}", f"{name}[{key}].mul_({c})",
                f"{name} += {b}",
                 f"{name}[{key}][{d.index(t.shape)}] = {c}", f"{name}.T[0] = {c}",
                 f"{name}[{rows}] = {b}",
                 f"{name}[{rows}] += {c}", f"{name}[::-1][0] *= {c}",
                 f"{name}.view(-1)[::2].add_({c})",
                 f"{name}.flip(0).mul_({c})", f"{name}[{key}].sin_()",
                 f"{name}.diagonal().fill_({c})",
                 f"{name}[{name} > 0] = {c}", f"{name}.masked_fill_({name} < 0, {c})",
                 f"{name} *= {name}",
                 f"{name}.index_add_(0, cr.tensor({[i % len(t) for i in rows]}), {a}[:2])",
                 f"{name}.copy_({b})", f"{name}[{key}] = {a}[{key}].sin()"]
            )
        )  # fmt: skip
    d.make("\n".join(lines))


def _custom(d: Draft) -> None:
    a = d.pick("f", lambda t: t.dtype == np.float64)
    b = d.pick("f", lambda t: t.shape == d.values[a].shape and t.dtype == np.float64)
    source, count = d.random.choice(
        [(f"cube({a})", 1), (f"product_and_sum({a}, {b})", 2), (f"with_mask({a})", 2),
         (f"unchanged({a})", 1)]
    )  # fmt: skip
    d.make(source, count)


def _join(d: Draft) -> None:
    a = d.pick("f")
    b = d.pick("f", lambda t: t.shape == d.values[a].shape)
    forms = ["cr.stack([{}, {}])", "cr.cat([{}, {}], -1)", "cr.stack([{}, {}], -1)",
             "cr.outer({}.ravel(), {}.ravel())",
             "{{'a': {}, 'b': [{}]}}['b'][0]", "sum([{}, {}])", "cr.hstack([{}, {}])",
             "cr.kron({}, {})"]  # fmt: skip
    d.make(d.random.choice(forms).format(a, b))


def _cast(d: Draft) -> None:
    a = d.pick("fi")
    d.make(
        a
        + d.random.choice(
            [".float()", ".double()", ".to(cr.float16)", ".int()", ".bool()", ".detach()"]
        )
    )


def _integers(d: Draft) -> None:
    a, r = d.pick("ib"), d.random
    form = r.choice(["{a} // -2", "{a} % -3", "{a} * {c}", "{a} + True", "{a} ** 2",
                     "{a} == {c}", "{a} - -{c}",
                     "{a}.sum()", "{a}.cumsum(0)", "-({a} * 2)", "{a} / {c}", "abs({a})",
                     "{a} << 1", "{a} & 3"])  # fmt: skip
    d.make(form.format(a=a, c=d.constant()))


WRITERS: list[tuple[Callable[[Draft], None], int]] = [
    (_arithmetic, 4), (_power, 2), (_unary, 3), (_slice, 4), (_shape, 3), (_reduce, 2),
    (_cumulative, 2),
    (_einsum, 2), (_pick, 3), (_where, 2), (_matrices, 2), (_product, 1), (_fourier, 1),
    (_complex, 2),
    (_loop, 2), (_write, 4), (_custom, 1), (_join, 2), (_cast, 1), (_integers, 1),
]  # fmt: skip
"""How statements are written, and the weights with which they are drawn."""


def random_function(seed: int, length: int = 8) -> Function:
    """Return the random function of a seed."""
    return Draft(seed).draw(length)
