"""What a driver's benchmark must see for itself, or clear away, provoked on a virtual EVM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.step import Prepare
from evmperf.benchmarks.tables import usb_gadget as gadget
from evmperf.lab.bench import LabgridBench
from evmperf.measure import shellstep
from evmperf.measure.runner import Runner
from evmperf.measure.runs.spool import Spool, new_run_id
from evmperf.model.results import Status
from evmperf.model.run import Run

pytestmark = pytest.mark.virtual_evm


@pytest.fixture
def runner(bench: LabgridBench, tmp_path: Path) -> Runner:
    spool = Spool(tmp_path, Run(id=new_run_id("faults"), board="faults", profile="quick"))
    return Runner(bench, spool, "quick", ["aplay", "dd", "mkfs.vfat"])


def test_a_gadget_that_a_killed_run_left_is_taken_away(runner: Runner, bench: LabgridBench) -> None:
    benchmark = catalogue.benchmark("usbdev_hs_slave_write")
    (case,) = benchmark.cases("quick")
    shell = bench.shell()
    shellstep.install(shell)
    for step in benchmark.declared_steps(bench.board, case, "quick"):
        if isinstance(step, Prepare) and step.name in ("plug", "mount"):
            assert shellstep.run(shell, step.command, step.timeout_s).status == 0
    assert shell.run("grep -c gadget /proc/mounts", 10).text.strip() == "1"

    result = runner.measure(benchmark, case)

    assert result.status is Status.MEASURED, result.failures
    left = shell.run(
        f"grep gadget /proc/mounts; ls -d {gadget.GADGET} {gadget.BACKING} /sys/module/dummy_hcd; "
        "ls -d /tmp/*-gadget",
        10,
    )
    assert left.text.count("No such file") == 4, left.text
    assert "vfat" not in left.text


def test_a_rate_that_the_device_does_not_have_is_refused(runner: Runner) -> None:
    benchmark = catalogue.benchmark("audio_playback")
    case = next(case for case in benchmark.cases("full") if case.label == "24000")

    result = runner.measure(benchmark, replace(case, params={**case.params, "window_s": 2}))

    assert result.status is Status.REFUSED
    assert not result.samples
    assert {failure.message for failure in result.failures} == {
        "the device runs at 22050 Hz instead of 24000 Hz"
    }
