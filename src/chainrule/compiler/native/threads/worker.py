"""Work sharing between spinning threads, as compiled code: a hand-over takes a microsecond.

A sleeping thread takes 25 to 40 µs until it works, longer than most operations on a million
elements. So after a job each thread spins for a while, waiting for the next one, before it sleeps.
Both happen in machine code without the interpreter lock: acquiring that from a caller that keeps
retaking it takes milliseconds. There is one job at a time. Its caller works, too, and waits only
for iterations that another thread has begun, as in `kernels.threads`: a thread without a free core
costs nothing.

The functions here are compiled with `atomics`; `pool` has the threads that run them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `atomics` emits their instructions
    address: Any = ...
    address_of_share: Any = ...
    buffer_i8_4: Any = ...
    call: Any = ...
    compare_exchange: Any = ...
    fetch_add: Any = ...
    load: Any = ...
    relax: Any = ...
    sleep: Any = ...
    store: Any = ...

Words = Any

# Indices of the words that the threads share. Words that several threads write have cache lines, of
# eight words, of their own.
OWNER = 0  # 1 while a caller has a job
OPEN = 8  # number of the job while threads may join it, else 0
HELPING = 16  # number of threads at the job
JOB = 24  # task, address of its arguments, iterations, iterations at a time, number
SHARE = JOB + 5  # address of `share`, for callers
PART = JOB + 6  # number of iterations assigned to each thread
COUNT = JOB + 7  # number of threads, with the caller
ENDED = 32  # 1 when the threads must end
MEMBERS = 40  # two cache lines for each thread, also the caller: the first is 1 while it spins
NEXT = 8  # the second: the first iteration of its part that is not begun


def work(words: Words, index: int) -> None:
    """Run iterations of the job until all are begun: the thread's own part first, then others'.

    In the next job on the same arrays, its part is in its core's cache.
    """
    task, arguments = load(words, JOB), load(words, JOB + 1)
    iterations, step = load(words, JOB + 2), load(words, JOB + 3)
    part, count = load(words, PART), load(words, COUNT)
    for i in range(index, index + count):
        part_index = i % count
        stop = min((part_index + 1) * part, iterations)
        start = fetch_add(words, MEMBERS + 16 * part_index + NEXT, step)
        while start < stop:
            call(task, arguments, start, min(start + step, stop))
            start = fetch_add(words, MEMBERS + 16 * part_index + NEXT, step)


def share(words: Words, task: int, arguments: int, iterations: int, step: int) -> None:
    """Run a task on this thread and the spinning ones, `step` iterations at a time."""
    if not compare_exchange(words, OWNER, 0, 1):  # another job is running
        for start in range(0, iterations, step):
            call(task, arguments, start, min(start + step, iterations))
    else:
        number, count = load(words, JOB + 4) + 1, load(words, COUNT)
        store(words, JOB, task)
        store(words, JOB + 1, arguments)
        store(words, JOB + 2, iterations)
        store(words, JOB + 3, step)
        store(words, JOB + 4, number)
        part = -(-iterations // (count * step)) * step
        store(words, PART, part)
        for i in range(count):
            store(words, MEMBERS + 16 * i + NEXT, i * part)
        store(words, OPEN, number)
        work(words, 0)
        store(words, OPEN, 0)
        while load(words, HELPING) != 0:
            relax()
        store(words, OWNER, 0)


def multiply(products: Words, at: int, words: Words, a: int, b: int, c: int) -> None:
    """Multiply matrices at addresses: from `at` on, `products` has a task, and its plan."""
    arguments = buffer_i8_4()
    arguments[0], arguments[1], arguments[2] = a, b, c
    arguments[3] = address(products, at + 3)
    task, iterations, step = products[at], products[at + 1], products[at + 2]
    if iterations <= step:
        call(task, address(arguments, 0), 0, iterations)
    else:
        function, team = load(words, SHARE), address(words, 0)
        call(function, team, task, address(arguments, 0), iterations, step)


def wait(words: Words, index: int, spins: int, lock: int, rounds: int) -> None:
    """Help with jobs; after `spins` iterations without one, sleep until the lock is released."""
    store(words, SHARE, address_of_share())
    last_job = 0
    while rounds > 0 and load(words, ENDED) == 0:
        remaining = spins
        store(words, MEMBERS + 16 * index, 1)
        while remaining > 0 and load(words, ENDED) == 0:
            number = load(words, OPEN)
            if number not in (0, last_job):
                fetch_add(words, HELPING, 1)
                if load(words, OPEN) == number:  # else its caller does not wait for this thread
                    work(words, index)
                fetch_add(words, HELPING, -1)
                last_job, remaining = number, spins
            relax()
            remaining -= 1
        store(words, MEMBERS + 16 * index, 0)
        sleep(lock)
        rounds -= 1
