"""Machine code of functions: read from disk or compiled, when it is first wanted."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from types import CodeType

from chainrule.compiler.native import disk_cache, elf_loader, jit


class Code:
    """A function of source, and of machine code when it's needed."""

    def __init__(
        self,
        text: str,
        types: tuple[str, ...],
        calls: frozenset[str],
        long: bool = False,
        shared: bool = False,
    ) -> None:
        self.text, self.types, self.calls = text, types, calls
        self.long, self.shared = long, shared
        self._function: Callable[..., None] | None = None

    def function(self) -> Callable[..., None]:
        """Return the machine code; another thread that wants some at the same time waits."""
        if self._function is None:
            with jit.lock:
                if self._function is None:
                    self._function = self._made()
        return self._function

    def _made(self) -> Callable[..., None]:
        key = hashlib.sha256(
            repr((self.text, self.types, self.long, self.shared)).encode()
            + disk_cache.surroundings()
        )
        name = f"loop_{key.hexdigest()[:32]}"
        code = disk_cache.read(name)
        if code is None:
            what = (self.text, self.types, self.calls, self.long)
            code = jit.object_code(*what, name, self.shared)
            disk_cache.write(name, code)
        return elf_loader.function_of(code, name)


def code_of(
    text: str,
    types: tuple[str, ...],
    calls: frozenset[str],
    long: bool = False,
    shared: bool = False,
) -> Code:
    """Return the machine code of a function called `loop`, whose arguments have these types.

    Functions that differ in nothing but the names of their variables are one.
    """
    return _code_of(unnamed(text), types, calls, long, shared)


_code_of = functools.lru_cache(maxsize=512)(Code)


def unnamed(text: str) -> str:
    """Return the source of a function with numbers for the names of its variables."""
    (code,) = [c for c in compile(text, "", "exec").co_consts if isinstance(c, CodeType)]
    numbers = {name: f"v{number}" for number, name in enumerate(code.co_varnames)}
    return re.sub(r"\b(?<!\.)[A-Za-z_]\w*", lambda found: numbers.get(found[0], found[0]), text)
