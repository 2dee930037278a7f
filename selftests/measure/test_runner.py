"""The runner with a real shell below it: what each failure costs, and what is kept."""

import contextlib
import os
import platform
import subprocess
from pathlib import Path

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.step import CleanUp, Measure, Prepare, Search, Trial, Where
from evmperf.lab.tester import CommandTester
from evmperf.measure.bench import Reply
from evmperf.measure.runner import Runner
from evmperf.model import places
from evmperf.model.errors import BoardError, Interrupted, Kind, LabError, RefusedOutput, ToolError
from evmperf.model.records import BootRecord
from evmperf.model.repeats import Repeats
from evmperf.model.results import Case, Direction, Metric, Reading, Status
from evmperf.model.run import Run
from evmperf.model.units import Unit
from evmperf.runs.spool import Spool, read_records, read_results, read_run
from selftests.support.boardfiles import fake_board
from selftests.support.fakes import LocalBench, LocalShell, SteppingClock, failed_boot, good_boot

RATE = Metric("rate", Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, "Rate", low=1.0, high=100.0)
LOAD = Metric("load", Unit.PERCENT, Direction.LOWER, "Load", low=0.0, high=100.0, required=False)
CASE = Case("4k", {"block_size": "4k"})


def parse(outputs):
    try:
        return [Reading("rate", float(outputs["x"]))]
    except (KeyError, ValueError):
        raise RefusedOutput("x holds no number", outputs.get("x", "")) from None


def measuring(command, name="write", repetition=0):
    return Measure(name, command, 10, parse=parse, repetition=repetition)


def make(*steps, **changes):
    """A benchmark with these steps."""
    given = {
        "name": "emmc_fake", "driver": "emmc", "title": "Fake", "section": ("Fake",),
        "metrics": (RATE, LOAD), "profiles": {"quick": Profile((CASE,))}, "place": Place.SHELL,
        "steps": lambda board, case, profile: steps, "tools": ("dd",),
    }  # fmt: skip
    return Benchmark(**{**given, **changes})


FINE = make(measuring('echo 12.5 >"$OUT/x"'))


@pytest.fixture
def board(tmp_path):
    boot = {"medium": "sd", "max_failures": 2}
    return fake_board(tmp_path / "fake.yaml", "boot", "emmc", boot=boot)


@pytest.fixture
def lab(tmp_path, board):
    """A function that makes a runner; keywords go to the bench."""

    def make_runner(scripted=(), *, results=tmp_path, shell=None, repeats=None, **bench):
        shell = shell or LocalShell(tmp_path / "board", scripted)
        spool = Spool(results, Run("fake-1", "fake-evm", "quick"))
        local = LocalBench(board, shell, **bench)
        return Runner(local, spool, "quick", ["dd", "no-such-tool"], repeats=repeats)

    return make_runner


def on_spool(runner):
    return read_results(runner.spool.folder)


def messages(result):
    return [f"{f.kind}: {f.message}" for f in result.failures]


def test_a_case_is_measured_and_on_the_spool(lab):
    runner = lab()
    result = runner.measure(FINE, CASE)
    assert result.status is Status.MEASURED
    assert result.values("rate") == [12.5]
    assert result.samples[0].unit == "MB/s"
    assert "dd" in result.tools["dd"]
    assert on_spool(runner) == [result]
    assert (runner.spool.folder / result.raw[0]).exists()


def test_facts_of_the_board_are_gathered_once(lab):
    runner = lab()
    runner.measure(FINE, CASE)
    runner.measure(FINE, CASE)
    facts = read_run(runner.spool.folder).facts
    assert facts["kernel"] == os.uname().release
    assert set(facts["tools"]) == {"dd"}
    asked = runner.bench.shell().asked
    assert sum("uname -r" in command for command in asked) == 1


def test_refused_once_then_fine_is_measured_and_the_refusal_is_kept(lab, tmp_path):
    flag = tmp_path / "flag"
    step = measuring(f'[ -e {flag} ] && echo 7 >"$OUT/x" || echo garbage >"$OUT/x"; touch {flag}')
    runner = lab()
    result = runner.measure(make(step), CASE)
    assert result.status is Status.MEASURED
    assert result.values("rate") == [7.0]
    (failure,) = result.failures
    assert (failure.kind, failure.step, failure.refused) == (Kind.TOOL, "write", True)
    assert (runner.spool.folder / failure.raw).read_text() == "garbage\n"
    assert on_spool(runner) == [result]


@pytest.mark.parametrize(
    ("value", "reason"),
    [("garbage", "x holds no number"), ("0", "rate of 0 MB/s is not plausible"),
     ("101", "not plausible"), ("nan", "not plausible"), ("inf", "not plausible")],
)  # fmt: skip
def test_refused_twice_is_refused_without_a_number(lab, value, reason):
    runner = lab()
    result = runner.measure(make(measuring(f'echo {value} >"$OUT/x"')), CASE)
    assert result.status is Status.REFUSED
    assert result.samples == ()
    assert len(result.failures) == 2
    for failure in result.failures:
        assert reason in failure.message
        assert (runner.spool.folder / failure.raw).read_text().count(value) == 1
    assert runner.bench.abandoned == 0


def test_a_reading_that_nobody_declared_is_refused(lab):
    step = Measure("write", "true", 10, parse=lambda outputs: [Reading("surprise", 1.0)])
    result = lab().measure(make(step), CASE)
    assert result.status is Status.REFUSED
    assert "no metric 'surprise'" in result.failures[-1].message


def test_a_declared_metric_that_is_not_there_makes_the_case_partial(lab):
    other = Metric("other", Unit.PERCENT, Direction.LOWER, "Other")
    result = lab().measure(make(*FINE.steps(None, CASE, None), metrics=(RATE, other)), CASE)
    assert result.status is Status.PARTIAL


def test_an_optional_metric_may_be_missing(lab):
    assert lab().measure(FINE, CASE).status is Status.MEASURED


def test_a_repetition_that_fails_leaves_the_others(lab):
    steps = [
        measuring('echo 5 >"$OUT/x"', "write0", 0),
        measuring("echo no space >&2; exit 1", "write1", 1),
        measuring('echo 6 >"$OUT/x"', "write2", 2),
    ]
    benchmark = make(*steps, profiles={"quick": Profile((CASE,), 3)})
    result = lab().measure(benchmark, CASE)
    assert result.status is Status.PARTIAL
    assert [(s.repetition, s.value) for s in result.samples] == [(0, 5.0), (2, 6.0)]
    assert messages(result) == ["tool: write1 ended with status 1: no space"]


def test_a_missing_tool_fails_the_case_and_is_named(lab):
    runner = lab()
    result = runner.measure(make(measuring("true"), tools=("dd", "no-such-tool")), CASE)
    assert result.status is Status.FAILED
    assert result.failures[0].kind is Kind.TOOL
    assert "no-such-tool is not on the board's PATH" in result.failures[0].message
    assert runner.measure(FINE, CASE).status is Status.MEASURED


def test_clean_up_is_done_after_a_failed_preparation_and_nothing_else(lab, tmp_path):
    steps = [
        Prepare("prepare", "echo no such device; exit 3", 10),
        measuring(f"touch {tmp_path}/measured"),
        CleanUp("clean-up", f"touch {tmp_path}/cleaned", 10),
    ]
    result = lab().measure(make(*steps), CASE)
    assert result.status is Status.FAILED
    assert messages(result) == ["tool: prepare ended with status 3: no such device"]
    assert (tmp_path / "cleaned").exists()
    assert not (tmp_path / "measured").exists()


def test_clean_up_that_fails_is_recorded_and_the_figures_stay(lab):
    steps = [*FINE.steps(None, CASE, None), CleanUp("clean-up", "exit 1", 10)]
    result = lab().measure(make(*steps), CASE)
    assert result.values("rate") == [12.5]
    assert messages(result) == ["tool: clean-up ended with status 1: no message"]


def test_a_step_that_hangs_costs_its_case_only(lab):
    # the wrapper is used for the facts first, then for the step
    runner = lab([None, ToolError("`fio` did not end within 10 s: it was interrupted")])
    result = runner.measure(FINE, CASE)
    assert result.status is Status.FAILED
    assert result.failures[0].kind is Kind.TOOL
    assert runner.bench.abandoned == 0
    assert runner.measure(FINE, CASE).status is Status.MEASURED


def test_a_console_that_was_away_costs_one_repetition_of_the_step(lab):
    runner = lab([None, Interrupted("the console was away for 1.0 s")])
    result = runner.measure(FINE, CASE)
    assert result.status is Status.MEASURED
    assert messages(result) == ["lab: the console was away for 1.0 s"]


def test_a_damaged_answer_is_noted_as_a_condition(lab):
    runner = lab([None, lambda reply: Reply(0, reply.text[:60])])
    result = runner.measure(FINE, CASE)
    assert result.status is Status.MEASURED
    assert result.conditions["fetched_again"] == 1


def test_a_boards_failure_power_cycles_the_board_and_goes_on(lab):
    runner = lab([None, BoardError("kernel panic on the console")])
    result = runner.measure(FINE, CASE)
    assert result.status is Status.FAILED
    assert result.failures[0].kind is Kind.BOARD
    assert runner.bench.abandoned == 1
    assert runner.measure(FINE, CASE).status is Status.MEASURED


def test_after_a_power_cycle_the_wrapper_is_installed_again(lab, tmp_path):
    runner = lab()
    runner.measure(FINE, CASE)
    runner.bench._shell = LocalShell(tmp_path / "rebooted")  # /tmp is empty after a boot
    assert runner.measure(FINE, CASE).status is Status.MEASURED


def test_a_board_that_cannot_be_reached_is_broken_and_not_tried_again(lab):
    runner = lab(reach=[BoardError("no login prompt within 180 s")])
    first = runner.measure(FINE, CASE)
    second = runner.measure(FINE, CASE)
    assert first.status is second.status is Status.FAILED
    assert messages(first) == ["board: no login prompt within 180 s"]
    assert second.failures[0].message.startswith("not tried: the board is broken: no login prompt")
    assert runner.bench.reached == 1
    assert on_spool(runner) == [first, second]


@pytest.mark.parametrize("where", ["reach", "step"])
def test_a_broken_lab_ends_the_run_after_the_result_is_safe(lab, where):
    error = LabError("the power switch does not answer")
    runner = lab(reach=[error]) if where == "reach" else lab([None, error])
    with pytest.raises(LabError, match="the power switch does not answer"):
        runner.measure(FINE, CASE)
    (result,) = on_spool(runner)
    assert result.status is Status.FAILED
    assert messages(result) == ["lab: the power switch does not answer"]


def test_a_broken_lab_keeps_what_the_case_had_measured(lab):
    steps = [measuring('echo 5 >"$OUT/x"', "write0"), measuring('echo 6 >"$OUT/x"', "write1", 1)]
    runner = lab([None, None, LabError("the console went away")])
    with pytest.raises(LabError):
        runner.measure(make(*steps, profiles={"quick": Profile((CASE,), 2)}), CASE)
    (result,) = on_spool(runner)
    assert result.status is Status.PARTIAL
    assert result.values("rate") == [5.0]


# U-Boot


class Uboot:
    files = None

    def __init__(self, *replies):
        self.replies = list(replies)

    def run(self, command, timeout_s):
        return self.replies.pop(0)


def uboot_benchmark():
    step = Measure("read", "time mmc read", 10, parse=lambda o: parse({"x": o["console"]}))
    return make(step, place=Place.UBOOT, tools=())


def test_a_uboot_step_gives_its_console_text(lab):
    result = lab(shell=Uboot(Reply(0, "42"))).measure(uboot_benchmark(), CASE)
    assert result.values("rate") == [42.0]


def test_a_uboot_step_takes_the_time_of_the_runners_clock(board, tmp_path):
    spool = Spool(tmp_path, Run("fake-1", "fake-evm", "quick"))
    bench = LocalBench(board, Uboot(Reply(0, "42")))
    runner = Runner(bench, spool, "quick", [], clock=SteppingClock(7.0))
    assert runner.measure(uboot_benchmark(), CASE).tool_s == 7.0


def test_a_failed_uboot_command_is_named_with_its_last_line(lab):
    runner = lab(shell=Uboot(Reply(1, "switch to partitions #0, ERROR\nno card present")))
    result = runner.measure(uboot_benchmark(), CASE)
    assert messages(result) == ["tool: read ended with status 1: no card present"]


# Boots


BOOTS = make(
    name="boot_time_fake", driver="boot", place=Place.BOOT, tools=(),
    metrics=catalogue.benchmark("boot_time_mmcsd").metrics,
    profiles={"quick": Profile((CASE,), 5)},
)  # fmt: skip


def boot_records(runner):
    return [r for r in read_records(runner.spool.folder) if isinstance(r, BootRecord)]


def test_boots_give_one_sample_each(lab):
    runner = lab(boots=[good_boot(seconds) for seconds in (2, 3, 4, 5, 6)])
    result = runner.measure(BOOTS, CASE)
    assert result.status is Status.MEASURED
    assert result.values("boot_time") == [2, 3, 4, 5, 6]
    boots = boot_records(runner)
    assert len(boots) == 5
    assert read_run(runner.spool.folder).facts["uboot"].startswith("U-Boot 2025.01")


def test_boots_that_were_asked_for_go_before_the_profiles(lab):
    runner = lab(boots=[good_boot(seconds) for seconds in (2, 3)], repeats=Repeats(boots=2))
    assert runner.measure(BOOTS, CASE).values("boot_time") == [2, 3]


def test_boot_times_alone_come_with_the_facts_of_the_linux_they_booted(lab):
    runner = lab(boots=[good_boot() for _ in range(5)])
    assert runner.measure(BOOTS, CASE).status is Status.MEASURED
    assert read_run(runner.spool.folder).facts["kernel"] == platform.release()


def test_one_hung_boot_is_recorded_and_keeps_the_others(lab):
    hung = failed_boot(BoardError("no login prompt within 60 s"))
    runner = lab(boots=[good_boot(), hung, good_boot(), good_boot(), good_boot()])
    result = runner.measure(BOOTS, CASE)
    assert result.status is Status.PARTIAL
    assert [s.repetition for s in result.samples if s.metric == "boot_time"] == [0, 2, 3, 4]
    (failure,) = result.failures
    assert (failure.kind, failure.step) == (Kind.BOARD, "cycle 2")
    assert "no login prompt within 60 s" in failure.message
    record = boot_records(runner)[1]
    assert record.failure.phase == "login prompt"
    assert record.post_mortem == "power: on"
    assert not runner.broken


def late_boot():
    return good_boot(bound_ns=70_000_000)


def test_a_cycle_whose_marks_came_late_is_repeated_and_recorded(lab):
    runner = lab(boots=[good_boot(2), late_boot(), good_boot(3), *[good_boot(4)] * 3])
    result = runner.measure(BOOTS, CASE)
    assert result.status is Status.MEASURED
    assert result.values("boot_time") == [2, 3, 4, 4, 4]
    assert [s.error for s in result.samples if s.metric == "boot_time"] == [0.001] * 5
    (failure,) = result.failures
    assert (failure.step, failure.kind, failure.refused) == ("cycle 2", Kind.LAB, True)
    assert "may be 70 ms off, and 50 ms are allowed" in failure.message
    boots = boot_records(runner)
    assert len(boots) == 6
    assert {mark.error_s for mark in boots[1].marks if mark.phase != "power_on"} == {0.07}


def test_a_lab_that_stamps_late_does_not_make_a_broken_board(lab):
    runner = lab(boots=[late_boot() for _ in range(15)])
    result = runner.measure(BOOTS, CASE)
    assert result.status is Status.REFUSED
    assert len(result.failures) == 15
    assert not runner.broken


def test_a_sample_says_how_far_off_it_is_where_that_was_measured(lab):
    runner = lab(boots=[good_boot() for _ in range(5)])
    runner.measure(BOOTS, CASE)
    runner.measure(FINE, CASE)
    boots, rates = read_results(runner.spool.folder)
    assert {s.error for s in boots.samples if s.metric == "boot_time"} == {0.001}
    assert all(s.error is None for s in rates.samples)
    assert [r.error("boot_time") for r in read_results(runner.spool.folder)] == [0.001, None]


def test_a_boot_that_shows_no_kernel_is_a_failed_cycle(lab):
    mute = failed_boot(None)
    runner = lab(boots=[good_boot(), mute, good_boot(), good_boot(), good_boot()])
    result = runner.measure(BOOTS, CASE)
    assert result.status is Status.PARTIAL
    assert "no boot time" in result.failures[0].message


def test_more_failed_boots_than_allowed_and_the_board_is_broken(lab):
    bad = [failed_boot(BoardError("kernel panic")) for _ in range(3)]
    runner = lab(boots=[good_boot(), *bad, good_boot()])
    result = runner.measure(BOOTS, CASE)
    assert result.status is Status.PARTIAL
    assert result.values("boot_time") == [2.0]
    assert len(result.failures) == 4
    assert "the board is broken: 3 of 4 boots failed" in result.failures[-1].message
    assert runner.measure(FINE, CASE).failures[0].message.startswith("not tried")


def test_as_many_failed_boots_as_allowed_and_the_board_goes_on(lab):
    bad = [failed_boot(BoardError("kernel panic")) for _ in range(2)]
    runner = lab(boots=[*bad, good_boot(), good_boot(), good_boot()])
    assert len(runner.measure(BOOTS, CASE).values("boot_time")) == 3
    assert not runner.broken


def test_a_lab_that_breaks_in_the_middle_of_boots_keeps_those_done(lab):
    runner = lab(boots=[good_boot(), LabError("the power switch does not answer")])
    with pytest.raises(LabError):
        runner.measure(BOOTS, CASE)
    assert on_spool(runner)[0].values("boot_time") == [2.0]


# A full disk


@pytest.fixture
def tiny(tmp_path):
    """A folder on a file system of 64 KiB."""
    if os.geteuid():
        pytest.skip("mounting a tiny tmpfs needs root")
    folder = tmp_path / "tiny"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "evmperf-test", str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"no tmpfs available: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def measure_many(runner, benchmark):
    for _ in range(50):
        runner.measure(benchmark, CASE)


@pytest.mark.parametrize("error", [BoardError("dead"), LabError("no console")])
@pytest.mark.parametrize("way", ["measure", "search"])
def test_a_board_that_is_gone_leaves_a_clean_tester_behind(lab, tmp_path, error, way):
    marker = tmp_path / "server"

    def trials():
        yield Trial("try", "echo gone", 10, parse=parse)
        raise AssertionError("a board that is gone ends the search")

    measure = {"measure": measuring("echo gone"), "search": Search("search", trials, 30, 3)}[way]
    steps = [
        Prepare("start", f"touch {marker}", 10, where=Where.TESTER),
        measure,
        CleanUp("restore", "echo never >&2", 10),
        CleanUp("stop", f"rm {marker}", 10, where=Where.TESTER),
    ]
    beside = CommandTester(["env"], "this machine")
    runner = lab(shell=LocalShell(tmp_path / "board", [error], when="echo gone"), tester=beside)
    with contextlib.suppress(LabError):
        runner.measure(make(*steps), CASE)
    (result,) = on_spool(runner)
    assert str(error) in messages(result)[0]
    assert not marker.exists()
    assert not any("never" in command for command in runner.bench.shell().asked)
    runner.close()


def test_what_runs_on_the_tester_must_be_there(lab):
    beside = CommandTester(["env"], "this machine")
    runner = lab(tester=beside)
    step = Measure("write", 'echo 12 >"$OUT/x"', 10, parse=parse, where=Where.TESTER)
    result = runner.measure(make(step, tester_tools=("dd",)), CASE)
    assert result.values("rate") == [12.0]
    assert result.tools["tester dd"] == result.tools["dd"]
    with pytest.raises(LabError, match="no-such-tool is not on the tester's PATH"):
        runner.measure(make(step, tester_tools=("no-such-tool",)), CASE)
    folder = Path(f"{places.STEP_FOLDER}-{runner.spool.run.id}")
    assert folder.exists()
    runner.close()
    assert not folder.exists()


@pytest.mark.parametrize("filler", ["result", "raw"])
def test_a_full_disk_is_a_lab_error_with_the_remedy_and_costs_nothing_measured(lab, tiny, filler):
    runner = lab(results=tiny)
    first = runner.measure(FINE, CASE)
    ballast = tiny / "ballast"
    ballast.write_bytes(b"x" * (8 << 10))
    big = "head -c 200000 /dev/zero | tr '\\0' 7 >\"$OUT/big\"; " if filler == "raw" else ""
    if filler == "result":
        with pytest.raises(OSError, match="No space"):
            (tiny / "rest").write_bytes(b"x" * (1 << 20))
    step = measuring(big + 'echo 6 >"$OUT/x"')
    with pytest.raises(LabError, match=r"No space left on device.*--results.*is safe"):
        measure_many(runner, make(step))
    assert on_spool(runner)[0] == first
    assert read_run(runner.spool.folder).id == "fake-1"
    whole = (runner.spool.folder / "results.jsonl").read_bytes()
    assert whole.endswith(b"\n")
    (tiny / "rest").unlink(missing_ok=True)
    ballast.unlink()
    before = len(on_spool(runner))
    runner.spool.append(first)
    assert on_spool(runner)[before:] == [first]


def test_a_record_too_big_for_what_is_left_leaves_no_half_line(tiny):
    spool = Spool(tiny, Run("fake-1", "fake-evm", "quick"))
    first, large, second = (
        BootRecord(goal=goal, started_ns=1, duration_s=1.0, marks=())
        for goal in ("first", "x" * 100_000, "second")
    )
    spool.append(first)
    with pytest.raises(LabError, match="No space left on device"):
        spool.append(large)
    assert list(read_records(spool.folder)) == [first]
    spool.append(second)
    assert list(read_records(spool.folder)) == [first, second]


def test_the_fakes_folder_is_the_wrappers(lab):
    # LocalShell replaces the folder in commands by its name: it must be the one the package uses
    from selftests.support import fakes

    assert fakes.ON_BOARD == places.STEP_FOLDER


def test_long_facts_are_kept_at_the_end(lab):
    runner = lab()
    runner.measure(FINE, CASE)
    assert not (runner.spool.folder / "facts").exists()
    runner.close()
    assert "/" in (runner.spool.folder / "facts/mounts").read_text()


def test_a_board_that_is_gone_is_not_asked_for_long_facts(lab):
    runner = lab([BoardError("gone")])
    assert runner.measure(FINE, CASE).status is Status.FAILED
    asked = len(runner.bench.shell().asked)
    runner.close()
    assert len(runner.bench.shell().asked) == asked
    assert not (runner.spool.folder / "facts").exists()
