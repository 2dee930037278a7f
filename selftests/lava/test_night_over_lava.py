"""A night's plan on a real LAVA: submitted once, followed, read and judged."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml

from evmperf.benchmarks import control
from evmperf.benchmarks.tools.control import RUNS
from evmperf.boards import board as boards
from evmperf.commands.app import lavajobs
from evmperf.commands.cli import main as cli
from evmperf.commands.lava import selection
from evmperf.commands.lava.selection import JobKind
from evmperf.measure.runs.spool import read_results, read_run, results_in
from selftests.support import programs
from selftests.support.placelab import until
from selftests.support.spools import cases_of

pytestmark = pytest.mark.virtual_evm

DEADLINE_S = 1200.0


def write_plan(folder: Path, benchmarks: str) -> list[str]:
    """The call of a night that measures that on the lab's board."""
    plan = folder / "two.yaml"
    jobs = [{"board": "virtual", "benchmarks": benchmarks}]
    plan.write_text(yaml.safe_dump({"boards": jobs, "until": "40m", "against": "last:3"}))
    words = [sys.executable, "-m", "evmperf.commands.cli.main", "night", str(plan), "--over", "lava"]
    return [*words, "--results", str(folder / "results")]


def events(folder: Path, kind: str) -> list[dict[str, object]]:
    lines = [
        json.loads(line)
        for journal in folder.glob("results/night-*/journal.jsonl")
        for line in journal.read_text().splitlines()
    ]
    return [event for event in lines if event["event"] == kind]


def test_a_night_over_lava_is_the_same_night_and_its_job_is_read_once(
    lab, server, results, tmp_path, capsys
) -> None:
    words = write_plan(tmp_path, "emmc_vfat")
    log = tmp_path / "first.log"
    first = programs.start(log, *words)
    try:
        until(lambda: bool(events(tmp_path, "submitted")))
    finally:
        # LAVA goes on with the job, and the night called again finds it.
        programs.end(first)
    again = programs.run(*words, timeout_s=DEADLINE_S)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "going on with night-two-" in again.stdout
    assert "1 of 1 board measured." in again.stdout
    (submitted,) = events(tmp_path, "submitted")
    (measured,) = events(tmp_path, "measured")
    assert measured["lava"] == submitted["lava"]
    folder = tmp_path / "results" / str(measured["run"])
    run = read_run(folder)
    assert (run.kind, run.place, run.exit_status) == ("nightly", "virtual-01", 0)
    (night,) = (tmp_path / "results").glob("night-*")
    assert run.facts.night == night.name
    assert "| virtual-native | measured | virtual-01 |" in (night / "night.md").read_text()
    number = submitted["lava"]
    assert run.facts.uboot.startswith("U-Boot 20")
    assert run.facts.lava_job == {"number": number, "server": lab.url, "device": "virtual-01"}
    job = server.job(number)
    assert job.health == "Complete", server.log(number)[-3000:]
    found = lavajobs.judge(server, job)
    assert found.status == 0, found.lines
    before = set(results.iterdir())
    assert cli.main(["lava", "import", str(number), "--results", str(results)]) == 0
    assert "already read before" in capsys.readouterr().out
    assert set(results.iterdir()) == before
    cases = cases_of(folder)
    chosen = selection.select(boards.load(boards.find("virtual")), JobKind.NATIVE, "quick", "emmc_vfat")
    assert [(r.benchmark, r.case) for r in cases] == [(b.name, c.label) for b, c in chosen.cases]
    assert all(result.status == "measured" for result in cases)
    assert all(result.state.shown["queue.scheduler"] and not result.state.missing for result in cases)
    (loop,) = (r for r in results_in(folder) if r.benchmark == control.NAME)
    assert len(loop.values(control.LOOP.name)) == RUNS


@pytest.mark.long_lava_job
def test_what_no_lava_job_can_be_is_said_and_the_rest_is_measured(lab, server, tmp_path) -> None:
    words = write_plan(tmp_path, "emmc_vfat or boot_time or uboot_emmc")
    done = programs.run(*words, timeout_s=DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "virtual: not over LAVA: uboot_emmc" in done.stdout
    assert "2 of 2 boards measured." in done.stdout
    runs = [tmp_path / "results" / str(event["run"]) for event in events(tmp_path, "measured")]
    assert {r.benchmark for run in runs for r in read_results(run)} == {"emmc_vfat", "boot_time_mmcsd"}
