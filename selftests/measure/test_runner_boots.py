"""Boot times through the runner: failed, late and missing boots among good ones."""

import platform
from dataclasses import replace

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Place, Profile
from evmperf.benchmarks.families.boot import end_metric
from evmperf.boards.console.booted import identity
from evmperf.measure.runs.spool import read_records, read_results, read_run
from evmperf.model.errors import BoardError, Kind, LabError
from evmperf.model.records import BootMark, BootRecord
from evmperf.model.repeats import Repeats
from evmperf.model.results import MARKS, Status
from selftests.support.fakes import failed_boot, good_boot
from selftests.support.runners import CASE, FINE, make, on_spool

BOOTS = make(
    name="boot_time_fake",
    driver="boot",
    place=Place.BOOT,
    tools=(),
    metrics=catalogue.benchmark("boot_time_mmcsd").metrics,
    profiles={"quick": Profile((CASE,), 5)},
)


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


@pytest.mark.parametrize("error", ["no login prompt within 60 s", "no boot time"])
def test_one_hung_boot_is_recorded_and_keeps_the_others(lab, error):
    """Or one that shows no kernel."""
    hung = failed_boot(BoardError(error) if "login" in error else None)
    runner = lab(boots=[good_boot(), hung, good_boot(), good_boot(), good_boot()])
    result = runner.measure(BOOTS, CASE)
    assert result.status is Status.PARTIAL
    assert [s.repetition for s in result.samples if s.metric == "boot_time"] == [0, 2, 3, 4]
    (failure,) = result.failures
    assert failure.step == "cycle 2"
    assert error in failure.message
    record = boot_records(runner)[1]
    assert record.post_mortem == "power: on"
    if hung.error:
        assert (failure.kind, record.failure.phase) == (Kind.BOARD, "login prompt")
    assert not runner.broken


def test_a_boot_of_another_slot_is_named_and_not_counted(lab):
    line = "[    0.1] Kernel command line: root=/dev/mmcblk1p{} rw\r\n"
    said = ("\r\nU-Boot 2025.01-ti\r\n[    0.0] Linux version 6.12.17 #1 SMP\r\n" + line).format
    boots = [replace(good_boot(at + 2), system=identity(said(slot))) for at, slot in enumerate("232324")]
    runner = lab(boots=boots, repeats=Repeats(boots=6))
    result = runner.measure(BOOTS, CASE)
    assert (result.status, runner.broken) == (Status.PARTIAL, "")
    assert [s.repetition for s in result.samples if s.metric == "boot_time"] == [0, 2, 4]
    assert [failure.step for failure in result.failures] == ["cycle 2", "cycle 4", "cycle 6"]
    named = "root is 'root=/dev/mmcblk1p3', was 'root=/dev/mmcblk1p2'. An A/B updater"
    assert named in str(result.failures[0])


def test_the_first_boot_of_an_image_is_told_and_not_counted(lab):
    runner = lab(boots=[good_boot(seconds) for seconds in (30, 2, 3)], repeats=Repeats(boots=2))
    runner.spool.run.facts.provisioned = {"image": "x.wic"}
    result = runner.measure(BOOTS, CASE)
    assert result.values("boot_time") == [2, 3]
    assert len(boot_records(runner)) == 3
    assert "not counted" in result.conditions[MARKS]


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
    assert "may be 70 ms off, and 20 ms are allowed" in failure.message
    boots = boot_records(runner)
    assert len(boots) == 6
    assert {mark.error_s for mark in boots[1].marks if mark.phase != "power_on"} == {0.07}


def test_a_lab_that_stamps_late_does_not_make_a_broken_board(lab):
    runner = lab(boots=[late_boot() for _ in range(15)])
    result = runner.measure(BOOTS, CASE)
    assert result.status is Status.REFUSED
    assert len(result.failures) == 15
    assert not runner.broken


@pytest.mark.parametrize("count", [2, 3])
def test_more_failed_boots_than_allowed_and_the_board_is_broken(lab, count):
    bad = [failed_boot(BoardError("kernel panic")) for _ in range(count)]
    runner = lab(boots=[good_boot(), *bad, good_boot(), good_boot()])
    result = runner.measure(BOOTS, CASE)
    assert result.status is Status.PARTIAL
    assert bool(runner.broken) == (count > 2)
    if count == 2:
        assert len(result.values("boot_time")) == 3
        return
    assert result.values("boot_time") == [2.0]
    assert len(result.failures) == 4
    assert "the board is broken: 3 of 4 boots failed" in result.failures[-1].message
    assert runner.measure(FINE, CASE).failures[0].message.startswith("not tried")


def test_a_lab_that_breaks_in_the_middle_of_boots_keeps_those_done(lab):
    runner = lab(boots=[good_boot(), LabError("the power switch does not answer")])
    with pytest.raises(LabError):
        runner.measure(BOOTS, CASE)
    assert on_spool(runner)[0].values("boot_time") == [2.0]
