"""Machine code of functions, loaded from disk or compiled at first use."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from types import CodeType

from chainrule.compiler.native import disk_cache, elf_loader, jit
from chainrule.interrupts import uninterrupted


class Code:
    """A function as source, with machine code on demand."""

    def __init__(
        self,
        text: str,
        types: tuple[str, ...],
        long: bool = False,
        parallel: bool = False,
    ) -> None:
        self.text, self.types = text, types
        self.long, self.parallel = long, parallel
        self._function: Callable[..., None] | None = None

    def function(self) -> Callable[..., None]:
        """Return the compiled function; concurrent calls wait for the first one."""
        if self._function is None:
            uninterrupted(self._load)
        assert self._function is not None
        return self._function

    def _load(self) -> None:
        with jit.lock:
            if self._function is None:
                self._function = self._load_or_compile()

    def _load_or_compile(self) -> Callable[..., None]:
        key = hashlib.sha256(
            repr((self.text, self.types, self.long, self.parallel)).encode()
            + disk_cache.environment_key()
        )
        name = f"loop_{key.hexdigest()[:32]}"
        code = disk_cache.read(name)
        if code is not None:
            try:
                return elf_loader.function_of(code, name, fresh=False)
            except elf_loader.DamagedError:
                disk_cache.warn_of_damage()
        code = jit.object_code(self.text, self.types, self.long, name, self.parallel)
        disk_cache.write(name, code)
        return elf_loader.function_of(code, name)


def cached_code(
    text: str,
    types: tuple[str, ...],
    long: bool = False,
    parallel: bool = False,
) -> Code:
    """Return the code of a function called `loop` with arguments of these types.

    Functions that differ only in the names of variables share their code.
    """
    return _code_of(canonical_source(text), types, long, parallel)


_code_of = functools.lru_cache(maxsize=512)(Code)


def canonical_source(text: str) -> str:
    """Return the source of a function with its variables numbered, as a cache key.

    Those of kernels are already, and others have no functions before them.
    """
    *others, code = [c for c in compile(text, "", "exec").co_consts if isinstance(c, CodeType)]
    if others:
        return text
    numbers = {name: f"v{number}" for number, name in enumerate(code.co_varnames)}
    return re.sub(r"\b(?<!\.)[A-Za-z_]\w*", lambda found: numbers.get(found[0], found[0]), text)
