"""The runner with a real shell below it: facts, shared executions, the tester, rows with their own metrics,
boots. What becomes of failures is test_scenarios.py's.
"""

import functools
import itertools
import os
import platform
import re
from dataclasses import replace

import pytest

from evmperf.benchmarks.benchmark import Profile
from evmperf.benchmarks.families.boot import end_metric
from evmperf.benchmarks.step import Measure, Prepare, Where
from evmperf.benchmarks.tools import perf
from evmperf.measure.runs.spool import read_records, read_results, read_run
from evmperf.model import anytime
from evmperf.model.errors import LabError, UsageError
from evmperf.model.records import BootMark, BootRecord
from evmperf.model.repeats import Repeats
from evmperf.model.repeats import parse as parse_repeats
from evmperf.model.results import MARKS, Case, Reading, Status
from evmperf.publish.report.shape import text_table
from selftests.support.fakes import LocalShell, good_boot
from selftests.support.runners import BOOTS, CASE, DELAY, FINE, A, B, C, make, make_rows, measuring, parse


def test_facts_of_the_board_are_gathered_once(lab):
    runner = lab()
    runner.measure(FINE, CASE)
    runner.measure(FINE, CASE)
    facts = read_run(runner.spool.folder).facts
    assert facts.kernel == os.uname().release
    assert set(facts.tools) == {"dd"}
    asked = runner.bench.shell().asked
    assert sum("uname -r" in command for command in asked) == 1


def test_a_tool_of_no_planned_case_is_asked_for(lab):
    runner = lab()
    runner.measure(FINE, CASE)
    result = runner.measure(make(measuring('echo 7 >"$OUT/x"'), tools=("dd", "ls")), CASE)
    assert (result.status, "coreutils" in result.tools["ls"]) == (Status.MEASURED, True)


def test_after_a_power_cycle_the_wrapper_is_installed_again(lab, tmp_path):
    runner = lab()
    runner.measure(FINE, CASE)
    runner.bench._shell = LocalShell(tmp_path / "rebooted")  # /tmp is empty after a boot
    assert runner.measure(FINE, CASE).status is Status.MEASURED


# Shared executions


def executions(tmp_path):
    return (tmp_path / "count").read_text().count("x")


def test_a_tool_that_prints_all_rows_is_executed_once_and_its_raw_files_are_kept_once(lab, tmp_path):
    files = f"a=5 b=6 c=7 {perf.FOLDED}=8"
    command = f'echo x >>{tmp_path}/count; for f in {files}; do echo ${{f#*=}} >"$OUT/${{f%=*}}"; done'

    def steps(case):
        row = functools.partial(parse, name=case.label)
        return [Measure("table", command, 10, parse=row, shared="table")]

    runner, benchmark = lab(), make_rows(steps)
    results = [runner.measure(benchmark, case) for case in (A, B, C)]
    assert [result.values("rate") for result in results] == [[5.0], [6.0], [7.0]]
    assert [result.status for result in results] == [Status.MEASURED] * 3
    assert executions(tmp_path) == 1
    assert len({sample.time_ns for result in results for sample in result.samples}) == 1
    assert results[0].raw == results[1].raw == results[2].raw
    kept = [path for path in (runner.spool.folder / "raw").rglob("*") if path.is_file()]
    assert len(kept) == len(results[0].raw) == 4
    assert {path.read_text() for path in kept} == {"5\n", "6\n", "7\n", "8\n"}
    assert all(result.conditions["perf"] for result in results), "each row was measured with perf beside it"


def test_keys_keep_repetitions_and_drivers_apart(lab, tmp_path):
    command = f'echo x >>{tmp_path}/count; echo 5 >"$OUT/x"'

    def steps(case):
        return [Measure(f"t{n}", command, 10, parse=parse, repetition=n, shared=f"t{n}") for n in (0, 1)]

    profiles = {"quick": Profile((A, B, C), 2)}
    runner = lab()
    for case in (A, B):
        assert runner.measure(make_rows(steps, profiles=profiles), case).status is Status.MEASURED
    assert executions(tmp_path) == 2
    runner.measure(make_rows(steps, profiles=profiles, driver="mmcsd"), A)
    assert executions(tmp_path) == 4


def test_a_parser_that_runs_out_is_an_error_and_no_quiet_end(lab):
    def careless(outputs):
        return [next(iter(()))]

    with pytest.raises(StopIteration):
        lab().measure(make_rows(lambda case: [Measure("x", "true", 10, parse=careless)]), A)


# The tester


def test_a_step_of_the_tester_runs_there_in_a_folder_of_the_run(lab, tmp_path):
    tester = LocalShell(tmp_path / "beside")
    runner = lab(tester=tester)
    where = Measure("where", 'pwd >/dev/null; echo 9 >"$OUT/x"', 10, parse=parse, where=Where.TESTER)
    on_board = Prepare("board", "true", 10)
    result = runner.measure(make_rows(lambda case: [on_board, where], tester_tools=("dd",)), A)
    assert result.values("rate") == [9.0], result.failures
    assert "dd" in result.tools["tester dd"]
    asked = len(tester.asked)
    runner.measure(make_rows(lambda case: [on_board, where], tester_tools=("dd",)), A)
    assert len(tester.asked) == asked + 1  # its step; the tools' versions are known
    folder = tmp_path / "beside" / "evmperf-fake-1"
    assert [path.name for path in folder.glob("step-*")]
    assert not any('echo 9 >"$OUT/x"' in command for command in runner.bench.shell().asked)
    runner.close()
    assert not folder.exists()


def test_a_tester_that_nothing_was_asked_of_is_left_alone(lab, tmp_path):
    tester = LocalShell(tmp_path / "beside")
    runner = lab(tester=tester)
    runner.measure(make_rows(lambda case: [Measure("x", 'echo 9 >"$OUT/x"', 10, parse=parse)]), A)
    runner.close()
    assert tester.asked == []


@pytest.mark.parametrize("there", [True, False])
def test_a_tester_without_the_tool_or_no_tester_is_a_broken_lab(lab, tmp_path, there):
    runner = lab(tester=LocalShell(tmp_path / "beside") if there else None)
    with pytest.raises(LabError, match=r"no-such-tool .*tester" if there else "no tester"):
        runner.measure(make_rows(lambda case: [], tester_tools=("dd", "no-such-tool")), A)


# Rows with their own metrics

OWN = Case("a", {}, (DELAY,))


def test_a_row_has_its_own_unit_and_range_and_lacks_what_others_have(lab):
    def steps(case):
        metric = "delay" if case.metrics else "rate"
        return [Measure("x", 'echo 5 >"$OUT/x"', 10, parse=lambda o: parse(o, "x", metric))]

    runner = lab()
    first, second = (runner.measure(make_rows(steps), case) for case in (OWN, B))
    assert (first.status, first.samples[0].unit) == (Status.MEASURED, "us")
    assert (second.status, second.samples[0].unit) == (Status.MEASURED, "MB/s")


@pytest.mark.parametrize(
    ("metric", "value", "reason"),
    [("rate", 5, "declares no metric 'rate'"), ("delay", 50, "delay of 50 us is not plausible")],
)
def test_a_row_with_its_own_metrics_takes_no_others(lab, metric, value, reason):
    step = Measure("x", f'echo {value} >"$OUT/x"', 10, parse=lambda o: parse(o, "x", metric))
    result = lab().measure(make_rows(lambda case: [step]), OWN)
    assert result.status is Status.REFUSED
    assert reason in result.failures[0].message


# Boots


def boot_records(runner):
    return [r for r in read_records(runner.spool.folder) if isinstance(r, BootRecord)]


def test_boots_give_one_sample_each_and_the_facts_of_the_linux_they_booted(lab):
    runner = lab(boots=[good_boot(seconds) for seconds in (2, 3, 4, 5, 6)])
    result = runner.measure(BOOTS, CASE)
    assert result.status is Status.MEASURED
    assert result.values("boot_time") == [2, 3, 4, 5, 6]
    assert len(boot_records(runner)) == 5
    facts = read_run(runner.spool.folder).facts
    assert facts.uboot.startswith("U-Boot 2025.01")
    assert facts.kernel == platform.release()
    # A sample says how far off it is where that was measured.
    runner.measure(FINE, CASE)
    boots, rates = read_results(runner.spool.folder)
    off = {sample.error for sample in boots.samples if sample.metric == "boot_time"}
    assert off == {boots.error("boot_time")} == {0.001}
    assert {sample.error for sample in rates.samples} == {rates.error("boot_time")} == {None}


def test_the_shortest_time_without_power_is_a_condition(lab):
    off = (replace(good_boot(), started_ns=-round(seconds * 1e9)) for seconds in (3.04, 2.51))
    runner = lab(boots=[*off, good_boot()], repeats=Repeats(boots=3))
    assert runner.measure(BOOTS, CASE).conditions["off_s"] == 2.5


def test_an_end_that_a_board_file_names_is_a_metric_with_its_error(lab):
    came = BootMark("app", 3_500_000_000, 3_500_000_000, 0.004, "ready")
    whole = [replace(good_boot(), ends={"app": came}) for _ in range(4)]
    late = replace(
        good_boot(), missed={"app": "end app: `line ready` did not come within 60 s of the prompt"}
    )
    runner = lab(boots=[*whole, late])
    result = runner.measure(replace(BOOTS, more=end_metric), CASE)
    assert result.values("end_app") == [2.5] * 4
    assert result.error("end_app") == pytest.approx(0.005)
    assert len(result.values("boot_time")) == 5
    assert [(f.step, f.message) for f in result.failures] == [("cycle 5, end app", late.missed["app"])]
    assert result.status is Status.PARTIAL
    assert boot_records(runner)[0].ends == (came,)


def test_the_first_boot_of_an_image_is_told_and_not_counted(lab):
    runner = lab(boots=[good_boot(seconds) for seconds in (30, 2, 3)], repeats=Repeats(boots=2))
    runner.spool.run.facts.provisioned = {"image": "x.wic"}
    result = runner.measure(BOOTS, CASE)
    assert result.values("boot_time") == [2, 3]
    assert len(boot_records(runner)) == 3
    assert "not counted" in result.conditions[MARKS]


# A case measured over until its mean is known; so often: scenarios.yaml


@pytest.fixture
def measured(lab, tmp_path):
    """A function that measures two rows of which each round has the next of these readings."""

    def run(repeats, values):
        step = Measure("measure", "true", 10, parse=lambda _: [Reading("rate", next(values))])
        runner = lab(results=tmp_path / str(repeats), repeats=repeats)
        return [runner.measure(make_rows(lambda case: [step]), case) for case in (A, B)]

    return run


def test_it_ends_when_the_mean_is_known_and_not_before_four_rounds(measured):
    noisy = itertools.chain([50.0, 60.0, 40.0], itertools.repeat(50.0, 400))
    first, second = measured(Repeats(within=0.02), noisy)
    values = [sample.value for sample in first.samples]
    assert anytime.half_width(values) <= 0.02 < anytime.half_width(values[:-1])
    assert len(second.samples) == 4
    assert first.conditions["repeat"] == f"{len(values)} rounds"
    assert re.search(r"^  \w: rate ±\d", text_table([first], 120), re.MULTILINE)


def test_the_budget_ends_it_and_that_is_said(measured):
    wild = itertools.cycle([10.0, 90.0])
    first, _ = measured(Repeats(within=0.001, budget_s=1e-9), wild)
    assert len(first.samples) == 1
    assert first.conditions["repeat"] == "1 round, not within 0.1% in 1e-09 s"
    first, _ = measured(None, wild)
    assert "repeat" not in first.conditions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", Repeats(5)),
        ("until:2%", Repeats(within=0.02)),
        ("until:0.5%/30m", Repeats(within=0.005, budget_s=1800)),
    ],
)
def test_what_is_asked_for_is_read(text, expected):
    assert parse_repeats(text) == expected


@pytest.mark.parametrize("text", ["", "0", "-1", "until:2", "until:0%", "until:2%/x", "2%"])
def test_anything_else_is_a_wrong_call(text):
    with pytest.raises(UsageError):
        parse_repeats(text)
