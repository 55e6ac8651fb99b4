"""Calls of libm for arguments beyond a limit, which do not keep LLVM from vectorising a loop.

Few numbers are beyond the limit of a polynomial, but a call of libm in a branch would make the loop
scalar. `sin_beyond_f8(x, limit, near)` is `near`, and sin(x) where |x| is beyond the limit. LLVM's
vectoriser replaces its call by that of a vector variant, which the attribute
`vector-function-abi-variant` names (LLVM's Vector Function ABI); the variant tests all elements at
once, and is inlined after vectorisation. The function itself is not inlined, as the vectoriser
must find its call.
"""

from __future__ import annotations

import re
from typing import Any

from chainrule.compiler.native.llvm_types import BITS, TYPES

_KNOWN = re.compile(r"(sin|cos|tan)_beyond_(f4|f8)")
_WIDTHS = {"f4": (2, 4, 8, 16), "f8": (2, 4, 8)}
_PURE = "nounwind willreturn memory(none)"


def is_known(name: str) -> bool:
    """Return whether a name is one of this module: `sin_beyond_f8`."""
    return _KNOWN.fullmatch(name) is not None


def is_used(functions: dict[str, str]) -> bool:
    """Return whether some of these functions are of this module."""
    return any(map(is_known, functions))


def attributes(name: str) -> str:
    """Return the attributes of calls of a function, which name its variants."""
    widths = _WIDTHS[name[-2:]]
    variants = ",".join(f"_ZGV_LLVM_N{n}vvv_{name}({name}_x{n})" for n in widths)
    return f' {_PURE} "vector-function-abi-variant"="{variants}"'


def add(module: Any, name: str) -> None:
    """Add a function, its variants and what they call to a module."""
    if name in module.functions:
        return
    known = _KNOWN.fullmatch(name)
    assert known is not None, name
    stem, code = known.groups()
    of, bits = TYPES[code], BITS[code]
    libm = stem + "f" * (code == "f4")
    module.declare(libm, of, of, effects=f" {_PURE}")
    module.declare(f"llvm.fabs.f{bits}", of, of)
    module.declare("llvm.expect.i1", "i1", "i1", "i1")
    module.functions[name] = _FUNCTION.format(name=name, of=of, bits=bits, libm=libm, pure=_PURE)
    module.functions[f"{name}_elements"] = _LOOP.format(name=name, of=of, bits=bits, libm=libm)
    kept = [name]
    for n in _WIDTHS[code]:
        vector = f"<{n} x {of}>"
        module.declare(f"llvm.fabs.v{n}f{bits}", vector, vector)
        module.declare(f"llvm.vector.reduce.or.v{n}i1", "i1", f"<{n} x i1>")
        text = _VARIANT.format(name=name, n=n, of=of, bits=bits, vector=vector)
        module.functions[f"{name}_x{n}"] = text
        kept.append(f"{name}_x{n}")
    module.kept += kept


_FUNCTION = """\
define internal {of} @{name}({of} %x, {of} %limit, {of} %near) noinline {pure} {{
  %size = call {of} @llvm.fabs.f{bits}({of} %x)
  %is_far = fcmp ogt {of} %size, %limit
  br i1 %is_far, label %far, label %done
far:
  %found = call {of} @{libm}({of} %x)
  ret {of} %found
done:
  ret {of} %near
}}"""

_VARIANT = """\
define internal {vector} @{name}_x{n}({vector} %x, {vector} %limit, {vector} %near) alwaysinline \
nounwind {{
  %of_x = alloca {vector}
  %of_result = alloca {vector}
  %size = call {vector} @llvm.fabs.v{n}f{bits}({vector} %x)
  %are_far = fcmp ogt {vector} %size, %limit
  %some = call i1 @llvm.vector.reduce.or.v{n}i1(<{n} x i1> %are_far)
  %seldom = call i1 @llvm.expect.i1(i1 %some, i1 false)
  br i1 %seldom, label %far, label %done
far:
  store {vector} %x, ptr %of_x
  store {vector} %near, ptr %of_result
  %one = extractelement {vector} %limit, i64 0
  call void @{name}_elements(ptr %of_x, ptr %of_result, {of} %one, i64 {n})
  %found = load {vector}, ptr %of_result
  br label %done
done:
  %result = phi {vector} [ %near, %0 ], [ %found, %far ]
  ret {vector} %result
}}"""

_LOOP = """\
define internal void @{name}_elements(ptr %from, ptr %to, {of} %limit, i64 %n) noinline nounwind {{
  br label %head
head:
  %i = phi i64 [ 0, %0 ], [ %next, %after ]
  %address = getelementptr inbounds {of}, ptr %from, i64 %i
  %x = load {of}, ptr %address
  %size = call {of} @llvm.fabs.f{bits}({of} %x)
  %is_far = fcmp ogt {of} %size, %limit
  br i1 %is_far, label %far, label %after
far:
  %found = call {of} @{libm}({of} %x)
  %result = getelementptr inbounds {of}, ptr %to, i64 %i
  store {of} %found, ptr %result
  br label %after
after:
  %next = add nuw nsw i64 %i, 1
  %is_done = icmp eq i64 %next, %n
  br i1 %is_done, label %end, label %head, !llvm.loop kept
end:
  ret void
}}"""
