"""Times of named parts and of statements, under PyTorch's names."""

import json
from pathlib import Path

import pytest

import chainrule as cr
from chainrule.profiler import profile, record_function, schedule
from chainrule.utils import benchmark


def test_parts_are_counted_where_a_profiler_records() -> None:
    @record_function("function")
    def function() -> int:
        return 1

    function()
    with profile(activities=[cr.profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
        for _ in range(2):
            function()
        with record_function("outer"), record_function("inner"):
            pass
    function()
    averages = prof.key_averages(group_by_input_shape=True)
    assert {row.key: row.count for row in averages} == {"function": 2, "inner": 1, "outer": 1}
    times = {row.key: row.cpu_time_total for row in averages}
    assert times["outer"] >= times["inner"] > 0
    lines = averages.table(sort_by="cpu_time_total", row_limit=2).splitlines()
    assert lines[0].split()[0] == "Name"
    assert len(lines) == 3
    assert prof.self_cpu_time_total == pytest.approx(sum(times.values()))
    assert "function" in str(prof)


def test_steps_of_a_schedule(tmp_path: Path) -> None:
    saved = []
    names = []

    def ready(prof: profile) -> None:
        saved.append([row.key for row in prof.key_averages()])
        cr.profiler.tensorboard_trace_handler(str(tmp_path))(prof)

    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    with profile(schedule=plan, on_trace_ready=ready) as prof:
        for number in range(12):
            names.append(plan(number).name)
            with record_function(f"part {number}"):
                pass
            prof.step()
    turn = ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"]
    assert names == ["NONE", *turn, *turn, *["NONE"] * 3]
    steps = [
        [f"{word} {n}" for n in part for word in ("part", "step")] for part in ((3, 4), (7, 8))
    ]
    assert [[name.replace("ProfilerStep#", "step ") for name in each] for each in saved] == steps
    traces = [json.loads(path.read_text())["traceEvents"] for path in tmp_path.iterdir()]
    assert [len(trace) for trace in traces] == [4, 4]


def test_the_profiler_of_autograd_may_be_off() -> None:
    with cr.autograd.profiler.profile(use_cuda=False) as on, record_function("a"):
        pass
    with cr.autograd.profiler.profile(enabled=False) as off, record_function("a"):
        pass
    assert (len(on.key_averages()), len(off.key_averages())) == (1, 0)
    with pytest.raises(ValueError, match="profile: no option is called recordshapes"):
        profile(recordshapes=True)


def test_times_of_a_statement() -> None:
    calls: list[int] = []
    timer = benchmark.Timer("f(1)", "f(0)", globals={"f": calls.append}, label="calls")
    measured = timer.timeit(20)
    assert calls == [0, 1, 1, 0, *[1] * 20]
    assert (measured.number_per_run, len(measured.raw_times)) == (20, 1)
    assert measured.times == [measured.median] == [measured.mean]
    assert measured.iqr == 0
    assert (measured.title, measured.stmt) == ("calls", "f(1)")
    assert "1 x 20 runs, 1 thread(s)" in repr(measured)
    told: list[int] = []
    blocks = timer.blocked_autorange(lambda number, seconds: told.append(number), 1e-4)
    assert told == [blocks.number_per_run] * len(blocks.times)
    adaptive = timer.adaptive_autorange(min_run_time=1e-5, max_run_time=1e-4)
    assert adaptive.median > 0
    with pytest.raises(AttributeError, match="Measurement has no attribute 'medians'"):
        measured.medians  # noqa: B018
    with pytest.raises(ValueError, match="leave out global_setup, language"):
        benchmark.Timer(language="c++")


def test_statements_of_a_timer_may_be_indented() -> None:
    calls: list[int] = []
    setup = """
        x = 2
        f(x)
    """
    timer = benchmark.Timer("    f(x + 1)", setup, globals={"f": calls.append})
    timer.timeit(3)
    assert calls[-3:] == [3, 3, 3]
    assert 2 in calls


def test_a_table_of_measurements() -> None:
    titles = {"label": None, "env": None, "num_threads": 1, "stmt": "f()"}
    results = [
        benchmark.Measurement(
            10, [seconds], {**titles, "sub_label": size, "description": description}
        )
        for size, description, seconds in (
            ("small", "new", 2e-5),
            ("small", "old", 5.0),
            ("large", "old", 1e-9),
        )
    ]
    table = benchmark.Compare(results[:2])
    table.extend_results(results[2:])
    table.trim_significant_figures()
    table.colorize()
    lines = [line.split() for line in str(table).splitlines()]
    assert lines == [
        ["new", "old"],
        ["small", "(1", "thread(s))", "2.00", "us", "500.00", "ms"],
        ["large", "(1", "thread(s))", "0.10", "ns"],
    ]
