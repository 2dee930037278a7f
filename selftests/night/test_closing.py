"""The end of a night: what was judged, what could not be done, and the exit status."""

from __future__ import annotations

import re
import time

from evmperf.commands.night import closing as closings
from evmperf.commands.night.closing import LOG, Closing, ClosingCommand, close
from evmperf.commands.night.conductor import Doing, NightConductor, Progress
from evmperf.commands.night.folder import OUTCOME, NightFolder
from evmperf.commands.night.plan import Job, read
from evmperf.measure.runs.history import SpoolFolder
from evmperf.model.ended import Ending
from evmperf.model.exits import ExitStatus
from selftests.support import runs


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


def test_all_runs_are_judged_and_what_is_worse_is_checked_again(tmp_path, monkeypatch, capfd):
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
    said = capfd.readouterr().out
    assert re.search(r"worse .*-29\.", said), said
    assert said.count("not checked again") == 1
    # There is no image of a good run to check it with, and that is nobody's failure.
    assert closing.failed == []
    assert closing.status == ExitStatus.FAILED
    assert [line.partition(",")[0] for line in closing.lines] == ["2 of 2 boards measured"]
    assert (tmp_path / "night-x" / OUTCOME).read_text() == f"{closing.lines[0]}\n"
    assert (tmp_path / "site/index.html").is_file()


def test_one_damaged_old_run_is_left_out_by_name_and_the_rest_is_judged(tmp_path, capfd):
    generator = runs.history(tmp_path, nights=12)
    damaged = tmp_path / "am64xx-hsevm-0004" / "results.jsonl"
    damaged.write_bytes(damaged.read_bytes().replace(b'"value":', b'"value":x', 1))
    (tmp_path / "am64xx-hsevm-0005" / "run.json").write_text("{")
    lost = ("emmc_ext4", "102400", "write_throughput")
    runs.write(tmp_path, runs.results(generator, changed={lost: 0.7}), number=20, night="night-x")
    closing = close(conducted(tmp_path, "site: no\n", [20]))
    assert (closing.failed, closing.judged) == ([], ExitStatus.FAILED)
    said = capfd.readouterr().out
    for text in ("am64xx-hsevm-0004: its results are damaged", "am64xx-hsevm-0005/run.json"):
        assert text in said


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
    assert closing.status == ExitStatus.FAILED
    assert closing.lines == [f"verdicts: {said}", "1 of 1 board measured."]


def test_the_exit_status_says_first_what_a_lab_has_to_mend():
    good, other = Progress(Job("a", name="a"), Ending.MEASURED), Job("b", name="b")
    given_up = Progress(other, Doing.GIVEN_UP, sentence="the night had to end")
    closing = Closing([good, given_up], ExitStatus.FAILED)
    assert closing.status == ExitStatus.LAB_BROKEN
    assert closing.lines[0] == f"b: given up: {given_up.sentence}"
    assert Closing([good, Progress(other, Ending.FAILED)]).status == ExitStatus.FAILED
    assert Closing([good], ExitStatus.FAILED).status == ExitStatus.FAILED
    assert Closing([good], ExitStatus.UNDECIDED).status == ExitStatus.UNDECIDED
    assert Closing([good]).status == ExitStatus.OK


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
    assert closing.failed == [("site", f"ended with status -9; see {tmp_path / LOG}")]
