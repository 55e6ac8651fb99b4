"""Machine code of functions, loaded from disk or compiled at first use."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from types import CodeType
from typing import Any

from chainrule.compiler.native import disk_cache, elf_loader, jit
from chainrule.compiler.native.loop_nest import LOOP_NAME
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

    @functools.cached_property
    def name(self) -> str:
        """The name of the function, and of its file on the disk."""
        source = repr((self.text, self.types, self.long, self.parallel)).encode()
        return f"loop_{hashlib.sha256(source + disk_cache.environment_key()).hexdigest()[:32]}"

    def __reduce__(self) -> Any:
        """Pickle the name of the file instead of the source."""
        return stored_code, (self.name, self.types, self.parallel)

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
        found = _function_on_disk(self.name)
        return self._compiled() if found is None else found

    def _compiled(self) -> Callable[..., None]:
        code = jit.object_code(self.text, self.types, self.long, self.name, self.parallel)
        disk_cache.write(self.name, code)
        return elf_loader.function_of(code, self.name)


def _function_on_disk(name: str) -> Callable[..., None] | None:
    """Return the function of a file, or None if it is missing, doubtful or damaged."""
    code = disk_cache.read(name)
    if code is not None:
        try:
            return elf_loader.function_of(code, name, fresh=False)
        except elf_loader.DamagedError:
            disk_cache.warn_of_damage()
    return None


class MissingError(Exception):
    """The disk has no such machine code any more."""


class StoredCode(Code):
    """A function of which only the machine code is known, by the name of its file."""

    def __init__(self, name: str, types: tuple[str, ...], parallel: bool) -> None:
        super().__init__("", types, parallel=parallel)
        self.name = name

    def _compiled(self) -> Any:
        raise MissingError(self.name)


@functools.lru_cache(maxsize=512)
def stored_code(name: str, types: tuple[str, ...], parallel: bool) -> StoredCode:
    """Return machine code on the disk, which programs share."""
    return StoredCode(name, types, parallel)


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

    Those of functions before it are already.
    """
    before, head, code = text.rpartition(f"def {LOOP_NAME}(")
    *_, function = [c for c in compile(text, "", "exec").co_consts if isinstance(c, CodeType)]
    numbers = {name: f"v{number}" for number, name in enumerate(function.co_varnames)}
    code = re.sub(r"\b(?<!\.)[A-Za-z_]\w*", lambda found: numbers.get(found[0], found[0]), code)
    return before + head + code
