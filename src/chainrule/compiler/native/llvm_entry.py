"""Entry points for Python of machine code: they unpack arguments, and release the lock."""

from __future__ import annotations

from chainrule.compiler.native.llvm_codegen import Module


class _EntryPoint:
    """Emitter of a C function for Python, which unpacks arrays and numbers.

    It takes an object, which it returns, and an array of arguments (METH_FASTCALL). It releases the
    interpreter lock while it runs.
    """

    def __init__(self, module: Module, name: str, types: tuple[str, ...], data_offset: int) -> None:
        self.module, self.name = module, name
        self.lines: list[str] = []
        self.arguments: list[str] = []
        for i, code in enumerate(types):
            self.lines.append(f"  %p{i} = getelementptr inbounds ptr, ptr %arguments, i64 {i}")
            self.lines.append(f"  %o{i} = load ptr, ptr %p{i}")
            if code in _READERS:
                symbol, kind = _READERS[code]
                module.declare(symbol, kind, "ptr")
                self.lines.append(f"  %a{i} = call {kind} @{symbol}(ptr %o{i})")
                self.arguments.append(f"{kind} %a{i}")
            else:
                self.lines.append(
                    f"  %d{i} = getelementptr inbounds i8, ptr %o{i}, i64 {data_offset}"
                )
                self.lines.append(f"  %a{i} = load ptr, ptr %d{i}")
                self.arguments.append(f"ptr %a{i}")
        module.declare("PyEval_SaveThread", "ptr")
        self.lines.append("  %state = call ptr @PyEval_SaveThread()")

    def finish(self) -> None:
        """Add the function to the module."""
        self.module.declare("PyEval_RestoreThread", "void", "ptr")
        self.module.declare("Py_IncRef", "void", "ptr")
        self.lines.append("  call void @PyEval_RestoreThread(ptr %state)")
        self.lines.append("  call void @Py_IncRef(ptr %self)")
        self.lines.append("  ret ptr %self")
        head = f"define ptr @{self.name}(ptr %self, ptr %arguments) nounwind"
        self.module.define(head, self.name, self.lines)


_READERS = {"n": ("PyLong_AsSsize_t", "i64"), "d": ("PyFloat_AsDouble", "double")}


def add_entry(module: Module, loop: str, name: str, types: tuple[str, ...], offset: int) -> None:
    """Add an entry point for Python that runs a loop."""
    entry = _EntryPoint(module, name, types, offset)
    entry.lines.append(f"  call void @{loop}({', '.join(entry.arguments)})")
    entry.finish()


def add_parallel_entry(
    module: Module, loop: str, name: str, types: tuple[str, ...], offset: int, share: int
) -> None:
    """Add an entry point that runs a loop on several threads.

    Threads call a task with the address of the arguments, each in a word of 64 bits. `share` is the
    index of the word that holds the address of `worker.share`. A call for -1 iterations stores the
    address of the task in the first word.
    """
    entry = _EntryPoint(module, name, ("i8", "n", "n", *types), offset)
    team, iterations, step = (argument.partition(" ")[2] for argument in entry.arguments[:3])
    given = [argument.partition(" ") for argument in entry.arguments[3:]]
    body = []
    arguments = ["i64 %start", "i64 %stop"]
    entry.lines.append(f"  %words = alloca [{len(given) or 1} x i64]")
    for i, (kind, _, value) in enumerate(given):
        place = f"getelementptr inbounds i64, ptr %words, i64 {i}"
        entry.lines += [f"  %w{i} = {place}", f"  store {kind} {value}, ptr %w{i}"]
        body += [f"  %w{i} = {place}", f"  %v{i} = load {kind}, ptr %w{i}"]
        arguments.append(f"{kind} %v{i}")
    body += [f"  call void @{loop}({', '.join(arguments)})", "  ret void"]
    task = f"{name}_task"
    head = f"define internal void @{task}(i64 %address, i64 %start, i64 %stop) nounwind"
    module.define(head, task, ["  %words = inttoptr i64 %address to ptr", *body])
    entry.lines += [
        "  %address = ptrtoint ptr %words to i64",
        f"  %task = ptrtoint ptr @{task} to i64",
        f"  %is_asked = icmp slt i64 {iterations}, 0",
        "  br i1 %is_asked, label %asked, label %given",
        "asked:",
        f"  store i64 %task, ptr {team}",
        "  br label %done",
        "given:",
        f"  %alone = icmp sle i64 {iterations}, {step}",
        "  br i1 %alone, label %one, label %several",
        "one:",
        f"  call void @{task}(i64 %address, i64 0, i64 {iterations})",
        "  br label %done",
        "several:",
        f"  %place = getelementptr inbounds i64, ptr {team}, i64 {share}",
        "  %function = load i64, ptr %place",
        "  %share = inttoptr i64 %function to ptr",
        f"  call void %share(ptr {team}, i64 %task, i64 %address, i64 {iterations}, i64 {step})",
        "  br label %done",
        "done:",
    ]
    entry.finish()
