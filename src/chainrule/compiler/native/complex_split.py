"""Complex programs as real ones: each complex value becomes its real and its imaginary part.

The functions of small programs and loops know real types only. The formulas are NumPy's, for
infinities and signed zeros too; quotients are those of Smith (Algorithm 116: complex division,
CACM 1962), in which no square overflows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.abstract_eval import DRAW, resolve
from chainrule.compiler.ir.program import Op, Program, Value, Write, map_values
from chainrule.compiler.native import fourier_codegen as fourier
from chainrule.compiler.native.complex_codegen import REAL_DTYPES
from chainrule.compiler.native.layout import UnfitError
from chainrule.compiler.native.op_recorder import RecordedArray, Recorder
from chainrule.compiler.passes import eliminate_dead_code
from chainrule.kernels.elementwise import modulus


class Pair(NamedTuple):
    """The parts of a complex operand: recorded arrays, or numbers."""

    real: Any
    imag: Any


def split_complex(program: Program) -> Program:
    """Return a program without complex values; complex inputs and results end in an axis of parts.

    Raises
    ------
    UnfitError
        If a complex operation has no rule.
    """
    if not _has_complex(program):
        return program
    return eliminate_dead_code(_Splitter({}).whole(program))  # parts that nobody reads


def _has_complex(program: Program) -> bool:
    values = [*program.inputs, *program.constants, *(v for op in program.ops for v in op.outs)]
    return any(v.dtype in REAL_DTYPES for v in values) or any(
        _has_complex(region) for op in program.ops for region in op.regions
    )


class _Namespace(Recorder):
    """The namespace of rules; zeros take no memory."""

    def __init__(self, ops: list[Op], constants: dict[Value, Any]) -> None:
        super().__init__(ops)
        self.constants = constants

    def zeros(self, shape: Any, dtype: Any) -> Any:
        """Return zeros as one number that is broadcast."""
        number = Value((), dtype)
        self.constants[number] = np.zeros((), dtype)
        return self.broadcast_to(RecordedArray(number, self.ops), shape)

    def constant(self, array: Any) -> Any:
        """Return a constant array."""
        value = Value(array.shape, array.dtype)
        self.constants[value] = array
        return RecordedArray(value, self.ops)


class _Splitter:
    """The real form of a program or region."""

    def __init__(self, parts: dict[Value, tuple[Value, ...]]) -> None:
        self.parts = parts  # of each value that is replaced: itself in another form, or two parts
        self.ops: list[Op] = []
        self.constants: dict[Value, Any] = {}
        self.xp = _Namespace(self.ops, self.constants)

    # --- programs ---

    def whole(self, program: Program) -> Program:
        """Return a program whose complex inputs and results have an axis of two parts."""
        inputs = {value: self._input(value) for value in program.inputs}
        self._body(program)
        outputs = [self._joined(value) for value in program.outputs]
        writes = [Write(inputs[w.target], self._joined(w.value)) for w in program.writes]
        return Program(program.name, [*inputs.values()], self.constants, self.ops, outputs, writes)

    def region(self, region: Program) -> Program:
        """Return a region with two inputs and outputs in the place of each complex one."""
        inner = _Splitter(self.parts)
        inputs = [part for value in region.inputs for part in inner._new(value)]
        inner._body(region)
        return Program(
            region.name, inputs, inner.constants, inner.ops, inner._flat(region.outputs), []
        )

    def _body(self, program: Program) -> None:
        for value, array in program.constants.items():
            self._constant(value, array)
        for op in program.ops:
            start = len(self.ops)
            self._op(op)
            for new in self.ops[start:]:
                new.location = new.location or op.location

    def _input(self, value: Value) -> Value:
        part = REAL_DTYPES.get(value.dtype)
        if part is None:
            return value
        joined = Value((*value.shape, 2), part, value.hint)
        array = RecordedArray(joined, self.ops)
        self.parts[value] = tuple([array[..., i].value for i in range(2)])
        return joined

    def _joined(self, value: Value) -> Value:
        parts = self.parts.get(value, (value,))
        if len(parts) == 1:
            return parts[0]
        found: Value = self.xp.stack([self._array(part) for part in parts], axis=-1).value
        return found

    def _constant(self, value: Value, array: Any) -> None:
        if value.dtype not in REAL_DTYPES:
            self.constants[value] = array
            return
        for part, half in zip(self._new(value), (array.real, array.imag), strict=True):
            self.constants[part] = np.ascontiguousarray(half).reshape(value.shape)

    def _new(self, value: Value) -> tuple[Value, ...]:
        """Return new values for the parts of a complex value; a real one itself."""
        dtype = REAL_DTYPES.get(value.dtype)
        if dtype is None:
            return (value,)
        imag_hint = value.hint and f"{value.hint}_imag"
        parts = Value(value.shape, dtype, value.hint), Value(value.shape, dtype, imag_hint)
        self.parts[value] = parts
        return parts

    def _flat(self, values: Iterable[Any]) -> list[Any]:
        """Return values, or ranges, with two parts in the place of each complex one."""
        found: list[Any] = []
        for value in values:
            found += self.parts.get(value, (value,)) if isinstance(value, Value) else (value,)
        return found

    # --- operations ---

    def _op(self, op: Op) -> None:
        if op.regions:
            self._region_op(op)
        elif not any(v.dtype in REAL_DTYPES for v in (*op.inputs, *op.outs)):
            self.ops.append(op.substitute(lambda value: self.parts.get(value, (value,))[0]))
        elif (
            len(op.outs) == 1
            and not op.inputs
            and op.function != DRAW
            and op.function not in _RULES
        ):
            self._constant(op.out, np.asarray(resolve(op.function)(*op.args, **op.kwargs)))
        else:
            self._complex(op)

    def _region_op(self, op: Op) -> None:
        args = tuple(
            [tuple(self._flat(a)) if isinstance(a, tuple) else self._flat([a])[0] for a in op.args]
        )
        regions = tuple(map(self.region, op.regions))
        outs = tuple([part for out in op.outs for part in self._new(out)])
        self.ops.append(Op(op.function, args, op.kwargs, outs, op.location, regions))

    def _complex(self, op: Op) -> None:
        """Append the real form of an operation with complex operands or results."""
        rule = _RULES.get(op.function)
        if rule is None and op.function not in _BY_PARTS:
            dtype = next(v.dtype for v in (*op.inputs, *op.outs) if v.dtype in REAL_DTYPES)
            raise UnfitError(f"{dtype} is not among the types that it has", "complex")
        args = map_values(op.args, self._operand)
        kwargs = {name: map_values(item, self._operand) for name, item in op.kwargs.items()}
        dtype = REAL_DTYPES.get(op.out.dtype)
        if rule is None:
            found = _by_parts(self.xp, op.function, args, kwargs, dtype)
        else:
            found = rule(self.xp, dtype or np.dtype(np.float64), *args, **kwargs)
        if (dtype is None) is isinstance(found, Pair):
            raise UnfitError(f"a result of {op.out.dtype}", "complex")
        parts = found if isinstance(found, Pair) else (found,)
        dtype = dtype or op.out.dtype
        self.parts[op.out] = tuple([self._as(part, op.out.shape, dtype) for part in parts])

    def _as(self, part: Any, shape: Any, dtype: Any) -> Value:
        part = part if part.dtype == dtype else self.xp.astype(part, dtype)
        part = part if part.shape == shape else self.xp.broadcast_to(part, shape)
        found: Value = part.value
        return found

    def _operand(self, value: Value) -> Any:
        parts = self.parts.get(value, (value,))
        if len(parts) == 2:
            return Pair(*map(self._array, parts))
        return self._array(parts[0])

    def _array(self, value: Value) -> RecordedArray:
        return RecordedArray(value, self.ops)


# --- operations that move or add elements: applied to each part -----------------------------------

_BY_PARTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(["getitem", "np.reshape", "np.permute_dims", "np.broadcast_to"], (0,)),
    **dict.fromkeys(["diagonal", "windows", "np.flip", "np.squeeze", "np.expand_dims"], (0,)),
    **dict.fromkeys(["np.ravel", "np.swapaxes", "np.moveaxis", "np.sum", "np.mean"], (0,)),
    **dict.fromkeys(["np.concat", "np.concatenate", "np.stack", "np.roll"], (0,)),
    **dict.fromkeys(["index_add", "take_along_axis", "np.tril", "np.triu"], (0,)),
    **dict.fromkeys(["plus_at", "assign_at", "add_at", "add_along_axis"], (0, 1)),
    "np.where": (1, 2),
}
"""The positions of the arguments that are data: others are masks, indices and axes."""


def _by_parts(xp: Recorder, function: str, args: Any, kwargs: Any, dtype: Any) -> Pair:
    if "dtype" in kwargs:
        raise UnfitError("a sum in another dtype", "complex")
    positions = _BY_PARTS[function]

    def part(imaginary: bool) -> Any:
        chosen = [
            _part(xp, arg, imaginary, dtype) if i in positions else arg
            for i, arg in enumerate(args)
        ]
        return xp.call(function, *chosen, **kwargs)

    return Pair(part(False), part(True))


def _part(xp: Recorder, data: Any, imaginary: bool, dtype: Any) -> Any:
    """Return a part of an operand, or of those in a list."""
    if isinstance(data, Pair):
        return data[imaginary]
    if isinstance(data, tuple | list):
        return [_part(xp, item, imaginary, dtype) for item in data]
    if isinstance(data, RecordedArray):
        return xp.zeros(data.shape, dtype) if imaginary else xp.astype(data, dtype)
    return _pair(data, dtype)[imaginary]


# --- rules: the namespace, the dtype of parts, and the operands -----------------------------------

Rule = Callable[..., Any]


def _pair(x: Any, dtype: Any) -> Pair:
    """Return an operand as a pair; the imaginary part of a real one is zero, as in NumPy."""
    if isinstance(x, Pair):
        return x
    if isinstance(x, RecordedArray):
        return Pair(x, dtype.type(0))
    number = complex(x)
    kind = dtype.type if isinstance(x, np.generic) else float
    return Pair(kind(number.real), kind(number.imag))


def _on_pairs(rule: Rule) -> Rule:
    """Return a rule that takes pairs only."""
    return lambda xp, dtype, *args, **kwargs: rule(xp, *[_pair(x, dtype) for x in args], **kwargs)


def _multiply(xp: Recorder, x: Pair, y: Pair) -> Pair:
    return Pair(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def _quotient(xp: Recorder, x: Pair, y: Pair) -> Pair:
    is_large = xp.abs(y.real) >= xp.abs(y.imag)
    large, small = xp.where(is_large, y.real, y.imag), xp.where(is_large, y.imag, y.real)
    is_zero = large == 0.0
    ratio = xp.where(is_zero, 0.0, small / xp.where(is_zero, 1.0, large))
    scale = 1.0 / (xp.where(is_zero, xp.abs(large), large) + small * ratio)
    first, second = xp.where(is_large, *x), xp.where(is_large, x.imag, x.real)
    real = first + xp.where(is_zero, 0.0, second * ratio)
    imag = xp.where(is_large, x.imag, -x.real)
    rest = xp.where(is_zero, 0.0, xp.where(is_large, x.real, -x.imag) * ratio)
    return Pair(real * scale, (imag - rest) * scale)


def _divide(xp: Recorder, dtype: Any, x: Any, y: Any) -> Pair:
    x = _pair(x, dtype)
    is_number = not isinstance(y, Pair | RecordedArray)
    if is_number and y != 0 and np.isfinite(y):
        return _multiply(xp, x, _pair(1 / y, dtype))
    if is_number or not isinstance(x.real, RecordedArray):
        x, y = _arrays(xp, dtype, x), _arrays(xp, dtype, _pair(y, dtype))
    return _quotient(xp, x, y if isinstance(y, Pair) else Pair(y, xp.zeros((), dtype)))


def _arrays(xp: Recorder, dtype: Any, x: Pair) -> Pair:
    return Pair(*[xp.zeros((), dtype) + part for part in x])


def _finite(rule: Rule) -> Rule:
    """Return a rule that leaves infinities to NumPy, which has many cases for them."""

    def checked(xp: Recorder, x: Pair) -> Pair:
        found: Pair = rule(xp, x)
        xp.check(xp.all(xp.isfinite(found.real) & xp.isfinite(found.imag)))
        return found

    return _on_pairs(checked)


def _exp(xp: Recorder, x: Pair) -> Pair:
    size = xp.exp(x.real)
    return Pair(size * xp.cos(x.imag), size * xp.sin(x.imag))


def _log(xp: Recorder, x: Pair) -> Pair:
    """Return the logarithm; that of a modulus near 1 by log1p, as in C libraries."""
    parts = xp.abs(x.real), xp.abs(x.imag)
    m, n = xp.maximum(*parts), xp.minimum(*parts)
    near = 0.5 * xp.log1p((m - 1.0) * (m + 1.0) + n * n)
    size = xp.where((m > 0.5) & (m < 3.0), near, xp.log(modulus(xp, *x)))
    return Pair(size, xp.atan2(x.imag, x.real))


def _sqrt(xp: Recorder, x: Pair) -> Pair:
    """Return the square root: of the larger part by the modulus, of the other by division."""
    size = xp.sqrt((modulus(xp, *x) + xp.abs(x.real)) * 0.5)
    other = xp.where(size == 0.0, 0.0, xp.abs(x.imag) / xp.where(size == 0.0, 1.0, 2.0 * size))
    is_right = xp.signbit(x.real)
    real, imag = xp.where(is_right, other, size), xp.where(is_right, size, other)
    return Pair(real, xp.copysign(imag, x.imag))


def _cos(xp: Recorder, x: Pair) -> Pair:
    imag = -(xp.sin(x.real) * xp.sinh(x.imag))
    return Pair(xp.cos(x.real) * xp.cosh(x.imag), imag)


def _sin(xp: Recorder, x: Pair) -> Pair:
    return Pair(xp.sin(x.real) * xp.cosh(x.imag), xp.cos(x.real) * xp.sinh(x.imag))


def _cosh(xp: Recorder, x: Pair) -> Pair:
    return Pair(xp.cosh(x.real) * xp.cos(x.imag), xp.sinh(x.real) * xp.sin(x.imag))


def _sinh(xp: Recorder, x: Pair) -> Pair:
    return Pair(xp.sinh(x.real) * xp.cos(x.imag), xp.cosh(x.real) * xp.sin(x.imag))


def _astype(xp: Recorder, dtype: Any, x: Any, target: Any, **_: Any) -> Any:
    if isinstance(x, RecordedArray):
        return Pair(xp.astype(x, dtype), xp.zeros(x.shape, dtype))
    if np.dtype(target) not in REAL_DTYPES:
        raise UnfitError("a complex number as a real one", "complex")
    return Pair(xp.astype(x.real, dtype), xp.astype(x.imag, dtype))


def _bits(xp: Recorder, dtype: Any, x: Any, target: Any) -> Any:
    """Neighbours along the last axis are the parts of a complex number."""
    target = np.dtype(target)
    if isinstance(x, Pair) and target == x.real.dtype:
        *lead, count = x.real.shape
        return xp.stack([x.real, x.imag], axis=-1).reshape((*lead, 2 * count))
    if isinstance(x, RecordedArray) and REAL_DTYPES.get(target) == x.dtype:
        return Pair(x[..., 0::2], x[..., 1::2])
    raise UnfitError(f"the bits of {target}", "complex")


def _zeros(xp: Recorder, dtype: Any, shape: Any, *_: Any, **__: Any) -> Pair:
    return Pair(xp.zeros(shape, dtype), xp.zeros(shape, dtype))


def _matmul(xp: Recorder, dtype: Any, x: Any, y: Any) -> Pair:
    if not isinstance(x, Pair):
        return Pair(xp.matmul(x, y.real), xp.matmul(x, y.imag))
    if not isinstance(y, Pair):
        return Pair(xp.matmul(x.real, y), xp.matmul(x.imag, y))
    real = xp.matmul(x.real, y.real) - xp.matmul(x.imag, y.imag)
    return Pair(real, xp.matmul(x.real, y.imag) + xp.matmul(x.imag, y.real))


def _vdot(xp: Recorder, dtype: Any, x: Any, y: Any) -> Pair:
    x, y = _pair(x, dtype), _pair(y, dtype)
    found = _multiply(xp, Pair(x.real, -x.imag), y)
    return Pair(xp.sum(found.real), xp.sum(found.imag))


def _fourier(name: str) -> Rule:
    """Return the rule of a transform of `np.fft`."""

    def rule(xp: Any, dtype: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        if "irfft" not in name and "rfft" in name:
            return Pair(*fourier.half(xp, x, *fourier.settings(name, x.shape, *args, **kwargs)))
        x = _pair(x, dtype)
        imag = x.imag if isinstance(x.imag, RecordedArray) else xp.zeros(x.real.shape, dtype)
        settings = fourier.settings(name, x.real.shape, *args, **kwargs)
        if "irfft" in name:
            return fourier.real_of_half(xp, x.real, imag, *settings)
        return Pair(*fourier.full(xp, x.real, imag, "ifft" in name, *settings))

    return rule


_RULES: dict[str, Rule] = {
    **{f"np.fft.{name}": _fourier(name) for name in fourier.TRANSFORMS},
    "np.add": _on_pairs(lambda xp, x, y: Pair(x.real + y.real, x.imag + y.imag)),
    "np.subtract": _on_pairs(lambda xp, x, y: Pair(x.real - y.real, x.imag - y.imag)),
    "np.multiply": _on_pairs(_multiply),
    "np.square": _on_pairs(lambda xp, x: _multiply(xp, x, x)),
    "np.divide": _divide,
    "np.true_divide": _divide,
    "np.negative": _on_pairs(lambda xp, x: Pair(-x.real, -x.imag)),
    "np.positive": _on_pairs(lambda xp, x: x),
    "np.conj": _on_pairs(lambda xp, x: Pair(x.real, -x.imag)),
    "np.conjugate": _on_pairs(lambda xp, x: Pair(x.real, -x.imag)),
    "np.real": _on_pairs(lambda xp, x: x.real),
    "np.imag": _on_pairs(lambda xp, x: x.imag),
    "np.abs": _on_pairs(lambda xp, x: modulus(xp, *x)),
    "np.absolute": _on_pairs(lambda xp, x: modulus(xp, *x)),
    "np.angle": _on_pairs(lambda xp, x: xp.atan2(x.imag, x.real)),
    "np.equal": _on_pairs(lambda xp, x, y: (x.real == y.real) & (x.imag == y.imag)),
    "np.not_equal": _on_pairs(lambda xp, x, y: (x.real != y.real) | (x.imag != y.imag)),
    "np.isfinite": _on_pairs(lambda xp, x: xp.isfinite(x.real) & xp.isfinite(x.imag)),
    "np.exp": _finite(_exp),
    "np.log": _on_pairs(_log),
    "np.sqrt": _finite(_sqrt),
    "np.cos": _finite(_cos),
    "np.sin": _finite(_sin),
    "np.cosh": _finite(_cosh),
    "np.sinh": _finite(_sinh),
    "np.astype": _astype,
    "bits": _bits,
    "np.zeros": _zeros,
    "np.matmul": _matmul,
    "np.vdot": _vdot,
    "kernels.complex": lambda xp, dtype, x, y: Pair(x, y),
}

FUNCTIONS = frozenset([*_RULES, *_BY_PARTS])
"""The functions whose complex operands have a real form."""
