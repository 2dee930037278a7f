"""What goes wrong on a board in the middle of a benchmark, provoked on a virtual EVM."""

import os
import signal
import threading
import time
from dataclasses import replace

import pytest
from evmperf_virtual.client import LabClient

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.families.scratch import guard
from evmperf.benchmarks.step import Measure, Outputs, Prepare, Step
from evmperf.benchmarks.tables import usb_gadget as gadget
from evmperf.measure import shellstep
from evmperf.measure.hostload import slowness
from evmperf.measure.runner import Runner
from evmperf.model.errors import Kind
from evmperf.model.results import Case, Direction, Metric, Reading, Result, Status
from evmperf.model.units import Unit

pytestmark = pytest.mark.virtual_evm

CASE = Case("case")


def number(outputs: Outputs) -> list[Reading]:
    return [Reading("number", float(outputs["number"]))]


FINE = Measure("measure", 'echo 42 >"$OUT/number"', 20, parse=number)


def measure(runner: Runner, *steps: Step) -> Result:
    benchmark = Benchmark(
        name="fault",
        driver="emmc",
        title="",
        section=(),
        metrics=(Metric("number", Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, "", low=0.0),),
        profiles={"quick": Profile((CASE,))},
        place=Place.SHELL,
        steps=lambda *_: steps,
        tools=(),
    )
    return runner.measure(benchmark, CASE)


def assert_usable(runner: Runner) -> None:
    after = measure(runner, FINE)
    assert after.status is Status.MEASURED, after.failures
    assert after.values("number") == [42.0]


def test_a_dead_board_is_named_within_seconds_and_power_cycled(runner: Runner) -> None:
    """It resets itself; test_network.py has a panic."""
    assert_usable(runner)
    began = time.monotonic()
    result = measure(runner, FINE, Prepare("die", "sync; echo b >/proc/sysrq-trigger; sleep 600", 700))
    assert time.monotonic() - began < 60, "the time-out of the step was waited for"
    assert result.status is Status.PARTIAL
    assert result.values("number") == [42.0], "what was measured before is kept"
    assert [failure.kind for failure in result.failures] == [Kind.BOARD]
    assert "silent reset" in result.failures[0].message
    assert_usable(runner)


def test_a_killed_qemu_ends_its_case_within_seconds(runner: Runner, virtual_bench: LabClient) -> None:
    assert_usable(runner)
    pid = virtual_bench.status().qemu_pid
    assert pid
    threading.Timer(3, os.kill, [pid, signal.SIGKILL]).start()
    began = time.monotonic()
    result = measure(runner, FINE, Prepare("wait", "sleep 600", 700))
    assert time.monotonic() - began < 60 * slowness()
    assert [failure.kind for failure in result.failures] == [Kind.BOARD]
    assert "its power switch says off" in result.failures[0].message
    assert_usable(runner)


def test_a_command_that_ignores_ctrl_c_does_not_run_on_under_the_next_step(runner: Runner) -> None:
    stubborn = "trap '' INT QUIT TERM; while :; do sleep 0.123; done"
    result = measure(runner, Prepare("hang", stubborn, 2))
    assert [failure.kind for failure in result.failures] == [Kind.TOOL]
    still = 'grep -l 0.12[3] /proc/[0-9]*/cmdline 2>/dev/null | grep -c . >"$OUT/number"; true'
    after = measure(runner, Measure("measure", still, 20, parse=number))
    assert after.values("number") == [0.0]


def test_a_terminal_that_cannot_be_interrupted_costs_a_reset(runner: Runner) -> None:
    assert_usable(runner)
    cycles = runner.bench.power_cycles
    result = measure(runner, Prepare("hang", "stty -isig </dev/tty; sleep 1000", 2))
    assert [failure.kind for failure in result.failures] == [Kind.BOARD]
    assert "must be reset" in result.failures[0].message
    assert_usable(runner)
    assert runner.bench.power_cycles == cycles + 1


def test_a_kernel_message_in_the_output_is_noticed_and_fetched_again(runner: Runner) -> None:
    lines = 20000
    command = (
        "i=0; (while [ $i -lt 3 ]; do i=$((i+1)); sleep 0.2; "
        'echo "<0>evmperf: cut in two" >/dev/kmsg; done) & '
        f'echo 42 >"$OUT/number"; seq {lines} | sha256sum >/dev/null; '
        f'head -c 400000 /dev/urandom >"$OUT/noise"; seq {lines} >"$OUT/numbers"'
    )
    seen: dict[str, str] = {}

    def parse(outputs: Outputs) -> list[Reading]:
        seen.update(outputs)
        return number(outputs)

    result = measure(runner, Measure("measure", command, 60, parse=parse))
    assert result.status is Status.MEASURED, result.failures
    assert seen["numbers"].split() == [str(i + 1) for i in range(lines)]
    assert result.conditions["fetched_again"] >= 1


def test_the_mounted_root_is_never_scratch(runner: Runner) -> None:
    link = "ln -sf $(awk '$2==\"/\"{print $1}' /proc/mounts) /tmp/root"
    result = measure(runner, Prepare("prepare", f"{link}; {guard('/tmp/root', '')}", 20), FINE)
    assert result.status is Status.FAILED
    assert "holds the mounted root" in result.failures[0].message
    assert_usable(runner)


# What a driver's benchmark must see for itself, or clear away


def test_a_gadget_that_a_killed_run_left_is_taken_away(runner: Runner) -> None:
    benchmark = catalogue.benchmark("usbdev_hs_slave_write")
    (case,) = benchmark.cases("quick")
    shell = runner.bench.shell()
    shellstep.install(shell)
    for step in benchmark.declared_steps(runner.bench.board, case, "quick"):
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
