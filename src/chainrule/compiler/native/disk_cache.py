"""Disk cache of machine code, so that a loop is compiled once and not in each process.

Object code is stored in the user's cache folder, under a hash of the source, the compiler versions
and the processor. The environment variable ``CHAINRULE_CACHE`` names another folder; if empty,
nothing is stored. ``CHAINRULE_CACHE_SIZE`` is the size in megabytes beyond which files that were
not used for longest are removed.

Whoever can write to the folder could have code run, as with `__pycache__`. So the folder and its
files are used only if they belong to the user and nobody else can write to them, and each file is
authenticated with a key that only the user can read. Everything else is ignored, and made again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import os
import platform
import re
import stat
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from chainrule.autograd.location import INTERNAL
from chainrule.compiler.native import jit

_FORMAT = 2
"""Version of the files: a digest, and object code."""

DEFAULT_MEGABYTES = 256
"""Size of the folder, unless ``CHAINRULE_CACHE_SIZE`` is set."""

_MAX_DRAFT_SECONDS = 3600
"""Age at which a draft is left over, even if a process has the number of the one that wrote it."""

_DIGEST, _KEY_BYTES = hashlib.sha256().digest_size, 32
_KEY = "loop.key"
_OWN_NAMES = re.compile(r"loop(_\w+)?|loop[\w.]*\.draft")
"""The files to remove: the user may have chosen a folder with others."""

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_HAS_OWNERS = os.open in os.supports_dir_fd and hasattr(os, "geteuid")  # all but Windows
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_MAX_FILE_BYTES = 1 << 28
_READ = os.O_RDONLY | _NOFOLLOW | getattr(os, "O_NONBLOCK", 0)  # a pipe must not make us wait
_PATH = getattr(os, "O_PATH", os.O_RDONLY)  # enough for a folder that we can't list
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW


def cache_folder() -> Path | None:
    """Return the cache folder, or None if caching is disabled."""
    chosen = os.environ.get("CHAINRULE_CACHE")
    try:
        if chosen is not None:
            return Path(chosen).expanduser().absolute() if chosen else None
        home = Path.home()
    except (RuntimeError, OSError):  # the user has no home, or the current folder is gone
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return (base / "chainrule" / "native").absolute()


def read(name: str) -> bytes | None:
    """Return the code stored under a name, or None if it is missing, doubtful or damaged."""
    try:
        with _folder(create=False) as folder:
            content, key = folder.read(name), folder.read(_KEY)
            code = content[_DIGEST:]
            if code and hmac.compare_digest(_digest(key, name, code), content[:_DIGEST]):
                folder.mark_used(name)
                return code
    except (OSError, ValueError):
        return None
    warn_of_damage()
    return None


def write(name: str, code: bytes) -> None:
    """Store code under a name, if possible."""
    limit = max_bytes()
    if len(code) + _DIGEST > limit:
        return
    # OSError: the disk is full, or may not be written to
    with contextlib.suppress(OSError, ValueError), _folder(create=True) as folder:
        folder.replace(name, _digest(folder.key(), name, code) + code)
        folder.prune(limit, keep=name)


def max_bytes() -> int:
    """Return the size in bytes beyond which files are removed."""
    try:
        megabytes = float(os.environ["CHAINRULE_CACHE_SIZE"])
        return max(int(megabytes * 1e6), 0)
    except (KeyError, ValueError, OverflowError):
        return DEFAULT_MEGABYTES * 10**6


def _digest(key: bytes, name: str, code: bytes) -> bytes:
    """Return the digest of a file, which includes the name, so that files can't be swapped."""
    if len(key) != _KEY_BYTES:
        raise ValueError("no key")
    return hmac.digest(key, name.encode() + b"\0" + code, "sha256")


# --- the folder -----------------------------------------------------------------------------------


class _DoubtfulError(OSError):
    """Somebody else may have written here."""


class _Folder:
    """The open cache folder, which only its user can write to.

    Files are found relative to the descriptor, so that nobody can exchange the folder meanwhile;
    Windows, which protects the folders of users itself, has paths instead.
    """

    def __init__(self, path: str, descriptor: int | None) -> None:
        self.path, self.descriptor = path, descriptor

    def _shown(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _at(self, name: str) -> str:
        return name if self.descriptor is not None else self._shown(name)

    def _opener(self, flags: int) -> Callable[[str, int], int]:
        return lambda path, _: os.open(path, flags, 0o600, dir_fd=self.descriptor)

    def read(self, name: str) -> bytes:
        """Return the content of a file that belongs to the user."""
        with open(self._at(name), "rb", opener=self._opener(_READ)) as opened:
            found = os.fstat(opened.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise _DoubtfulError(f"{name} is not a file")
            _check_owner(found, self._shown(name))
            if _HAS_OWNERS and name == _KEY and stat.S_IMODE(found.st_mode) & 0o077:
                raise _DoubtfulError("others can read the key")
            return opened.read() if found.st_size <= _MAX_FILE_BYTES else b""

    def replace(self, name: str, content: bytes) -> None:
        """Write a file at once: other processes see a complete one, or none."""
        draft = f"{name}.{os.getpid()}.{threading.get_native_id()}.{os.urandom(4).hex()}.draft"
        try:
            with open(self._at(draft), "wb", opener=self._opener(_CREATE)) as opened:
                opened.write(content)
            self._move(draft, name)
        finally:
            self.remove(draft)

    def _move(self, draft: str, name: str) -> None:
        places = self._at(draft), self._at(name)
        if name == _KEY:
            try:  # the first key stays
                return os.link(*places, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
            except FileExistsError:
                return None
            except OSError:  # a file system without links
                pass
        return os.replace(*places, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def key(self) -> bytes:
        """Return the key of the user's files, made at first use."""
        try:
            key = self.read(_KEY)
            if len(key) == _KEY_BYTES:
                return key
            self.remove(_KEY)
        except FileNotFoundError:
            pass
        except OSError:  # somebody else's
            self.remove(_KEY)
        self.replace(_KEY, os.urandom(_KEY_BYTES))
        return self.read(_KEY)  # another process may have made one at the same time

    def mark_used(self, name: str) -> None:
        """Set the time of last use."""
        with contextlib.suppress(OSError):  # a disk that can only be read
            os.utime(self._at(name), dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        """Remove a file, which another process may have done."""
        with contextlib.suppress(OSError):
            os.unlink(self._at(name), dir_fd=self.descriptor)

    def prune(self, limit: int, keep: str) -> None:
        """Remove drafts left over, and files that were not used for longest beyond a size."""
        files: list[tuple[float, int, str]] = []
        for entry in os.scandir(self.path if self.descriptor is None else self.descriptor):
            if not _OWN_NAMES.fullmatch(entry.name):
                continue
            with contextlib.suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                if entry.name.endswith(".draft"):
                    if _is_left_over(entry.name, found.st_mtime):
                        self.remove(entry.name)
                elif entry.name != keep:
                    files.append((found.st_mtime, found.st_size, entry.name))
                else:
                    limit -= found.st_size
        for _, size, name in sorted(files, reverse=True):
            limit -= size
            if limit < 0:
                self.remove(name)


def _is_left_over(draft: str, written: float) -> bool:
    """Whether nobody writes a draft any more."""
    if not -_MAX_DRAFT_SECONDS < time.time() - written < _MAX_DRAFT_SECONDS:
        return True
    number = re.search(r"\.(\d+)\.\d+(\.\w+)?\.draft$", draft)
    if number is None or not _HAS_OWNERS:  # on Windows, `os.kill` would end the process
        return False
    try:
        os.kill(int(number[1]), 0)
    except (ProcessLookupError, OverflowError):
        return True  # or it is on another machine: then that one has to compile again
    except OSError:
        pass  # somebody else's
    return False


@contextlib.contextmanager
def _folder(*, create: bool) -> Iterator[_Folder]:
    """Open the cache folder; raise OSError if there is none that can be trusted."""
    path = cache_folder()
    if path is None:
        raise FileNotFoundError("the cache is disabled")
    if not _HAS_OWNERS:
        if create:
            path.mkdir(parents=True, exist_ok=True)
        yield _Folder(str(path), None)
        return
    try:
        descriptor = _open_folder(str(path), create)
    except _DoubtfulError as error:
        _warn(f"machine code is compiled in each process, since {error}")
        raise
    try:
        yield _Folder(str(path), descriptor)
    finally:
        os.close(descriptor)


def _open_folder(path: str, create: bool) -> int:
    """Return the descriptor of a folder that only its user can write to.

    Parents below the home must be safe as well: who can write to them can exchange the folder.
    Elsewhere, as in /tmp, the folder itself is checked. With strings, since paths take longer.
    """
    parent, home = os.path.realpath(os.path.dirname(path)), os.path.realpath(_home())
    inside = home != os.sep and f"{parent}{os.sep}".startswith(f"{home}{os.sep}")
    here = home if inside else parent
    if create:
        for outer in (*reversed(Path(here).parents), Path(here)):
            with contextlib.suppress(OSError):
                outer.mkdir(mode=0o700)
    flags = os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW
    descriptor = os.open(here, os.O_DIRECTORY | _PATH)
    below = [part for part in parent[len(here) :].split(os.sep) if part]
    for part in (*below, None):
        name, kind = (os.path.basename(path), flags) if part is None else (part, flags | _PATH)
        here, above = os.path.join(here, name), descriptor
        try:
            if create:
                with contextlib.suppress(OSError):
                    os.mkdir(name, 0o700, dir_fd=above)
            descriptor = os.open(name, kind, dir_fd=above)
        except OSError:
            if os.path.islink(here):
                raise _DoubtfulError(f"{here} is a symbolic link") from None
            raise
        finally:
            os.close(above)
        try:
            _check_owner(os.fstat(descriptor), here, may_be_roots=part is not None)
        except BaseException:
            os.close(descriptor)
            raise
    return descriptor


def _home() -> str:
    """Return the user's home; the root folder if there is none."""
    try:
        return str(Path.home())
    except RuntimeError:
        return os.sep


def _check_owner(found: os.stat_result, path: str, *, may_be_roots: bool = False) -> None:
    """Raise if somebody else owns a file or folder, or can write to it."""
    if not _HAS_OWNERS:
        return
    if found.st_uid != os.geteuid() and not (may_be_roots and found.st_uid == 0):
        raise _DoubtfulError(f"{path} belongs to another user")
    if found.st_mode & _OTHERS_WRITE:
        raise _DoubtfulError(f"others can write to {path}: run chmod go-w on it")


@functools.cache  # one warning for each reason
def _warn(text: str) -> None:
    level, frame = 1, sys._getframe()
    passed = (contextlib.__file__, threading.__file__)
    while frame.f_back is not None and (
        INTERNAL[frame.f_code.co_filename] or frame.f_code.co_filename in passed
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)


def warn_of_damage() -> None:
    """Warn, once, that a file was damaged or not written by this user."""
    _warn(
        f"machine code in {cache_folder()} was damaged, or written by somebody else: it is ignored "
        "and made again"
    )


# --- keys -----------------------------------------------------------------------------------------


@functools.cache
def environment_key() -> bytes:
    """Return the part of the cache key that does not depend on the source of a loop."""
    versions = [version_key("llvmlite")]
    parts = [
        _FORMAT,
        *versions,
        sys.platform,
        platform.machine(),
        jit.ARRAY_DATA_OFFSET,
        _processor_key(),
    ]
    return repr(parts).encode() + b"".join(path.read_bytes() for path in compiled_sources())


def compiled_sources() -> list[Path]:
    """Return the files of the modules that are compiled into loops or compile them."""
    names = [
        "dense_kernels",
        "fourier_kernels",
        "gemm_microkernel",
        "jit",
        "libm_beyond",
        "trigonometry",
        "vector_math",
    ]
    names += ["llvm_codegen", "llvm_entry", "llvm_expressions", "llvm_types"]
    names += ["threads/atomics", "threads/worker"]
    return [Path(__file__).parent / f"{name}.py" for name in names]


def version_key(package: str, file: str = "_version.py") -> bytes:
    """Return the version file of a package, without importing it.

    `importlib.metadata` would load a megabyte of modules.
    """
    found = find_spec(package)
    if found is None or found.origin is None:
        return b""
    try:
        return Path(found.origin).with_name(file).read_bytes()
    except OSError:  # installed in another way
        return b""


def _processor_key() -> str:
    """Return the model and the features of the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        from llvmlite import binding

        return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    first, _, _ = text.partition("\n\n")
    stable = ("vendor", "cpu family", "model", "stepping", "flags", "CPU ", "Features")
    return "\n".join(row for row in first.splitlines() if row.startswith(stable))
