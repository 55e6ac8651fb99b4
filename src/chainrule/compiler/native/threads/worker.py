"""Threads that wait awake: machine code that hands parts of a job to other cores in a microsecond.

A thread that sleeps takes 25 to 40 µs until it works, longer than most operations on a million
numbers take as a whole. So each of these threads, once it has worked, goes on looking for the next
job for a while; then it sleeps until it is woken. Both are machine code, without the interpreter's
lock: to get that from a caller who always takes it again at once takes milliseconds. There is one
job at a time. Its caller works itself, and waits only for parts that another thread has begun, as
in `kernels.threads`: a thread that gets no core costs nothing.

The functions here are compiled with `atomics`; `team` has the threads that run them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainrule.compiler.native.threads.atomics import (
        address_of_share,
        advance,
        call,
        exchanged,
        load,
        relax,
        sleep,
        store,
    )

Words = Any

# Where things are among the words that the threads share. What several of them write is in cache
# lines of its own, of eight words.
OWNER = 0  # 1 while a caller has a job
OPEN = 8  # the job's number while threads may join it, else 0
HELPING = 16  # how many threads are at the job
JOB = 24  # task, address of its arguments, turns, turns at a time, number
SHARE = JOB + 5  # the address of `share`, for callers
PART = JOB + 6  # how many turns are each thread's own
COUNT = JOB + 7  # how many threads there are, with the caller
ENDED = 32  # 1 when the threads are to end
MEMBERS = 40  # the caller and each thread have two lines: in the first, 1 while it looks for jobs
NEXT = 8  # in the second, the first turn of its part that nobody has begun


def work(words: Words, own: int) -> None:
    """Do turns of the job until all are begun: of a thread's own part, then of the others'.

    In the next job on the same arrays it finds the same part in its core's cache.
    """
    task, arguments = load(words, JOB), load(words, JOB + 1)
    turns, step = load(words, JOB + 2), load(words, JOB + 3)
    part, count = load(words, PART), load(words, COUNT)
    for i in range(own, own + count):
        place = i % count
        stop = min((place + 1) * part, turns)
        start = advance(words, MEMBERS + 16 * place + NEXT, step)
        while start < stop:
            call(task, arguments, start, min(start + step, stop))
            start = advance(words, MEMBERS + 16 * place + NEXT, step)


def share(words: Words, task: int, arguments: int, turns: int, step: int) -> None:
    """Do a task by this thread and those that are awake, some turns at a time."""
    if not exchanged(words, OWNER, 0, 1):  # there is a job
        for start in range(0, turns, step):
            call(task, arguments, start, min(start + step, turns))
    else:
        number, count = load(words, JOB + 4) + 1, load(words, COUNT)
        for i, value in enumerate((task, arguments, turns, step, number)):
            store(words, JOB + i, value)
        part = -(-turns // (count * step)) * step
        store(words, PART, part)
        for i in range(count):
            store(words, MEMBERS + 16 * i + NEXT, i * part)
        store(words, OPEN, number)
        work(words, 0)
        store(words, OPEN, 0)
        while load(words, HELPING) != 0:
            relax()
        store(words, OWNER, 0)


def wait(words: Words, own: int, looks: int, lock: int, times: int) -> None:
    """Help with jobs, and sleep after so many looks without one until the lock is released."""
    store(words, SHARE, address_of_share())
    last = 0
    while times > 0 and load(words, ENDED) == 0:
        left = looks
        store(words, MEMBERS + 16 * own, 1)
        while left > 0 and load(words, ENDED) == 0:
            number = load(words, OPEN)
            if number not in (0, last):
                advance(words, HELPING, 1)
                if load(words, OPEN) == number:  # else its caller doesn't wait for this thread
                    work(words, own)
                advance(words, HELPING, -1)
                last, left = number, looks
            relax()
            left -= 1
        store(words, MEMBERS + 16 * own, 0)
        sleep(lock)
        times -= 1
