"""Atomic operations on 64-bit words and indirect calls, as intrinsics for Numba.

This module imports Numba.
"""

from __future__ import annotations

import platform
from types import FunctionType
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from chainrule.compiler.native.threads import worker

WORD = ir.IntType(64)
_ORDER = "seq_cst"
_RELAX = {  # the spin-wait hint of each architecture
    "x86_64": ("llvm.x86.sse2.pause", ()),
    "AMD64": ("llvm.x86.sse2.pause", ()),
    "aarch64": ("llvm.aarch64.hint", (1,)),
    "arm64": ("llvm.aarch64.hint", (1,)),
}.get(platform.machine())


def _load(typing: Any, words: Any, i: Any) -> Any:
    """Load a word atomically."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(builder.gep(args[0], [args[1]]), _ORDER, 8)

    return types.int64(words, types.int64), generate


def _store(typing: Any, words: Any, i: Any, value: Any) -> Any:
    """Store a word atomically."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[2], builder.gep(args[0], [args[1]]), _ORDER, 8)
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64), generate


def _fetch_add(typing: Any, words: Any, i: Any, step: Any) -> Any:
    """Add to a word atomically, and return its old value."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", builder.gep(args[0], [args[1]]), args[2], _ORDER)

    return types.int64(words, types.int64, types.int64), generate


def _compare_exchange(typing: Any, words: Any, i: Any, old: Any, new: Any) -> Any:
    """Replace a word atomically if it equals `old`, and return whether it did."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.gep(args[0], [args[1]])
        pair = builder.cmpxchg(pointer, args[2], args[3], _ORDER, _ORDER)
        return builder.extract_value(pair, 1)

    return types.boolean(words, types.int64, types.int64, types.int64), generate


def _relax(typing: Any) -> Any:
    """Pause for some nanoseconds in a spin-wait."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _RELAX is not None:
            name, numbers = _RELAX
            integer = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [integer] * len(numbers))
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            builder.call(function, [integer(number) for number in numbers])
        return context.get_dummy_value()

    return types.void(), generate


def _sleep(typing: Any, lock: Any) -> Any:
    """Acquire a lock of Python, sleeping until it is released."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer, anything = ir.IntType(32), ir.IntType(8).as_pointer()
        kind = ir.FunctionType(integer, [anything, integer])
        function = cgutils.get_or_insert_function(builder.module, kind, "PyThread_acquire_lock")
        builder.call(function, [builder.inttoptr(args[0], anything), integer(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _call(typing: Any, task: Any, arguments: Any, start: Any, stop: Any) -> Any:
    """Call a task by its address, for the iterations from start to stop."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [WORD] * 3)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


def _address_of_share(typing: Any) -> Any:
    """Return the address of `worker.share` as a C function."""
    returned = types.void(types.CPointer(types.int64), *[types.int64] * 4)
    share = FunctionType(worker.share.__code__, {**vars(worker), **globals()}, "share")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = context.compile_subroutine(builder, share, returned)
        kind = ir.FunctionType(ir.VoidType(), [WORD.as_pointer(), *[WORD] * 4])
        function = ir.Function(builder.module, kind, "share")
        function.linkage = "internal"
        inner = ir.IRBuilder(function.append_basic_block())
        context.call_internal_no_propagate(inner, found.fndesc, returned, function.args)
        inner.ret_void()
        return builder.ptrtoint(function, WORD)

    return types.int64(), generate


load, store, fetch_add, compare_exchange = map(
    intrinsic, (_load, _store, _fetch_add, _compare_exchange)
)
relax, sleep, call = map(intrinsic, (_relax, _sleep, _call))
_namespace = {**vars(worker), **globals()}
work = njit(FunctionType(worker.work.__code__, _namespace, "work"), forceinline=True)
address_of_share = intrinsic(_address_of_share)
