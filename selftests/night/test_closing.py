"""What the night's page says of verdicts: one line per figure, however many boards have it."""

from __future__ import annotations

import re
import time

import pytest

from evmperf.commands.night import closing as closings
from evmperf.commands.night.closing import LOG, Closing, ClosingCommand, NightBoard, close
from evmperf.commands.night.conductor import NightConductor, Progress
from evmperf.commands.night.folder import NightFolder
from evmperf.commands.night.plan import Job, read
from evmperf.measure.runs.history import SpoolFolder
from evmperf.measure.runs.spool import append_verdicts
from evmperf.model.exits import ExitStatus
from evmperf.model.records import VerdictRecord
from selftests.support import runs


def verdict(case, outcome, reason="", change=None):
    return VerdictRecord("emmc_ext4", case, "write", "emmc", outcome, reason, "last:30", change)


@pytest.fixture
def closing(tmp_path):
    """Two boards with the same loss, and one that was not measured."""
    boards = []
    for number, verdicts in enumerate(
        [
            [verdict("4m", "worse", "since | then", -0.2), verdict("4k", "same")],
            [verdict("4m", "worse", "since then", -0.21), verdict("4k", "worse", "so", -0.1)],
        ]
    ):
        folder = runs.write(tmp_path, [], number=number)
        append_verdicts(folder, verdicts)
        job = Job("am64x.yaml", name=f"am64x-{number}")
        progress = Progress(job, "measured", runs=[folder.name, "killed-early"])
        boards.append(NightBoard.of(progress, tmp_path))
    lab = Progress(Job("am64x.yaml", name="other"), "given up", sentence="the night had to end")
    return Closing([*boards, NightBoard(lab)])


def conducted(folder, plan, *measured):
    """A night in the folder of its runs that has measured these on each of its boards."""
    file = folder / "x.yaml"
    file.write_text(f"guide: no\n{plan}boards: [{', '.join(['{board: virtual.yaml}'] * len(measured))}]\n")
    (folder / "night-x").mkdir()
    there = NightFolder(folder / "night-x", time.time(), time.time() + 3600, resumed=False, lock=None)
    night = NightConductor(read(file), folder, there, lambda line: None)
    for progress, numbers in zip(night.progress, measured, strict=True):
        progress.state = "measured"
        progress.runs = [f"am64xx-hsevm-{number:04}" for number in numbers]
    return night


def test_a_figure_that_is_worse_on_several_boards_is_one_line(closing):
    first, second = closing.worse
    assert (first.key.case, first.change, [run.job for run in first.runs]) == (
        "4m",
        "-20.0 %",
        ["am64x-0", "am64x-1"],
    )
    assert (second.key.case, [run.job for run in second.runs]) == ("4k", ["am64x-1"])
    assert [board.judged for board in closing.boards] == ["1 worse, 1 same", "2 worse", "none"]
    assert closing.sentence == "2 of 3 boards measured, 1 given up, 2 figures are worse."


def test_all_runs_are_judged_and_what_is_worse_is_checked_again(tmp_path, monkeypatch):
    monkeypatch.setenv("EVMPERF_HISTORY", str(tmp_path / "store"))
    lost = ("emmc_ext4", "102400", "write_throughput")
    generator = runs.history(tmp_path, nights=12)
    for number in (20, 21):
        changed = {lost: 0.7} if number == 20 else {}
        runs.write(tmp_path, runs.results(generator, changed=changed), number=number, night="night-x")
    runs.write(tmp_path, [], number=22, night="night-x")  # nothing measured
    night = conducted(tmp_path, "confirm: 1m\n", [20], [21, 22])
    night.progress[1].runs.append("killed-early")
    closing = close(night)
    kept = SpoolFolder(tmp_path / "store").runs()
    assert [entry.run.id[-4:] for entry in kept] == ["0020", "0021", "0022"]
    (worse,) = closing.worse
    assert worse.key == lost
    assert [run.id for run in worse.runs] == ["am64xx-hsevm-0020"]
    # There is no image of a good run to check it with, and that is nobody's failure.
    assert closing.failed == []
    assert closing.status == ExitStatus.FAILED
    page = (tmp_path / "night-x/night.html").read_text()
    assert re.search(r"eMMC ext4, 100 KiB, write</th><td class=\"n\">-29\.", page), page
    assert "../site/index.html" in page


def test_one_damaged_old_run_is_left_out_by_name_and_the_rest_is_judged(tmp_path):
    generator = runs.history(tmp_path, nights=12)
    damaged = tmp_path / "am64xx-hsevm-0004" / "results.jsonl"
    damaged.write_bytes(damaged.read_bytes().replace(b'"value":', b'"value":x', 1))
    (tmp_path / "am64xx-hsevm-0005" / "run.json").write_text("{")
    lost = ("emmc_ext4", "102400", "write_throughput")
    runs.write(tmp_path, runs.results(generator, changed={lost: 0.7}), number=20, night="night-x")
    night = conducted(tmp_path, "site: no\n", [20])
    closing = close(night)
    assert closing.failed == []
    assert [w.key for w in closing.worse] == [lost]
    page = (tmp_path / "night-x/night.html").read_text()
    for text in ("am64xx-hsevm-0004: its results are damaged", "am64xx-hsevm-0005/run.json"):
        assert text in page


def test_a_night_without_verdicts_is_not_a_good_night(tmp_path, monkeypatch):
    generator = runs.history(tmp_path, nights=1)
    runs.write(tmp_path, runs.results(generator), number=20, night="night-x")
    night = conducted(tmp_path, "site: no\n", [20])
    # A mistake in evmperf, in the process that judges.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'check' in sys.orig_argv:\n"
        "    import evmperf.judge.against as against\n"
        "    def judged(*_, **__): raise AssertionError('moon phase')\n"
        "    against.judged = judged\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    closing = close(night)
    ((command, said),) = closing.failed
    assert command == "verdicts"
    log = tmp_path / "night-x" / LOG
    assert said.endswith(f"see {log}")
    assert "moon phase" in log.read_text()
    assert (closing.status, closing.unjudged) == (ExitStatus.FAILED, 1)
    assert closing.sentence == "1 of 1 board measured, 1 without verdicts."
    assert 'class="verdict bad"' in (tmp_path / "night-x/night.html").read_text()


def test_the_exit_status_says_first_what_a_lab_has_to_mend(closing):
    assert closing.status == ExitStatus.LAB_BROKEN
    assert Closing(closing.boards[:2]).status == ExitStatus.FAILED
    assert Closing([]).status == ExitStatus.OK


def test_the_log_of_a_nights_end_has_no_password(tmp_path):
    closing, log = Closing([]), tmp_path / LOG
    words = ["check", f"--results={tmp_path}", "--from=https://ci:hunter2pw@lab.example/store", "last"]
    closings.run(closing, log, ClosingCommand("verdicts", words))
    assert closing.failed
    assert "lab.example/store" in log.read_text()
    assert "hunter2pw" not in log.read_text() + str(closing.failed)


def test_a_command_that_does_not_end_when_told_is_killed_with_what_it_started(tmp_path, monkeypatch):
    deaf = tmp_path / "deaf"
    deaf.write_text("#!/bin/sh\ntrap '' TERM\nsleep 600 & wait\nwait\n")
    deaf.chmod(0o755)
    monkeypatch.setattr("evmperf.commands.night.closing.sys.executable", str(deaf))
    monkeypatch.setattr("evmperf.commands.night.closing._GRACE_S", 0.1)
    closing = Closing([])
    closings.run(closing, tmp_path / LOG, ClosingCommand("site", ["site"], limit_s=0.1))
    assert closing.failed == [("site", f"did not end within 0.1 s; see {tmp_path / LOG}")]
