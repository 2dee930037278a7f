"""What goes wrong on a board in the middle of a benchmark, provoked on a virtual EVM."""

import functools

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.families.scratch import guard
from evmperf.benchmarks.step import Measure, Prepare
from evmperf.benchmarks.tables import usb_gadget as gadget
from evmperf.measure import shellstep
from evmperf.model.errors import Kind
from evmperf.model.results import Direction, Metric, Status
from evmperf.model.units import Unit
from selftests.support import runners

pytestmark = pytest.mark.virtual_evm

NUMBER = Metric("number", Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, "", low=0.0)
number = functools.partial(runners.parse, name="number", metric="number")
FINE = Measure("measure", 'echo 42 >"$OUT/number"', 20, parse=number)


def measure(runner, *steps):
    return runner.measure(runners.make(*steps, metrics=(NUMBER,), tools=()), runners.CASE)


def assert_usable(runner):
    after = measure(runner, FINE)
    assert after.status is Status.MEASURED, after.failures
    assert after.values("number") == [42.0]


def test_a_dead_board_is_named_and_power_cycled(runner):
    """It resets itself, long before the time-out of the step."""
    result = measure(runner, FINE, Prepare("die", "sync; echo b >/proc/sysrq-trigger; sleep 600", 700))
    assert result.status is Status.PARTIAL
    assert result.values("number") == [42.0], "what was measured before is kept"
    assert [failure.kind for failure in result.failures] == [Kind.BOARD]
    assert "silent reset" in result.failures[0].message
    assert_usable(runner)


def test_a_command_that_ignores_ctrl_c_does_not_run_on_under_the_next_step(runner):
    stubborn = "trap '' INT QUIT TERM; while :; do sleep 0.123; done"
    result = measure(runner, Prepare("hang", stubborn, 2))
    assert [failure.kind for failure in result.failures] == [Kind.TOOL]
    still = 'grep -l 0.12[3] /proc/[0-9]*/cmdline 2>/dev/null | grep -c . >"$OUT/number"; true'
    after = measure(runner, Measure("measure", still, 20, parse=number))
    assert after.values("number") == [0.0]


def test_a_kernel_message_in_the_output_is_noticed_and_fetched_again(runner):
    lines = 20000
    command = (
        "i=0; (while [ $i -lt 3 ]; do i=$((i+1)); sleep 0.2; "
        'echo "<0>evmperf: cut in two" >/dev/kmsg; done) & '
        f'echo 42 >"$OUT/number"; seq {lines} | sha256sum >/dev/null; '
        f'head -c 400000 /dev/urandom >"$OUT/noise"; seq {lines} >"$OUT/numbers"'
    )
    seen = {}

    def parse(outputs):
        seen.update(outputs)
        return number(outputs)

    result = measure(runner, Measure("measure", command, 60, parse=parse))
    assert result.status is Status.MEASURED, result.failures
    assert seen["numbers"].split() == [str(i + 1) for i in range(lines)]
    assert result.conditions["fetched_again"] >= 1


def test_the_mounted_root_is_never_scratch(runner):
    link = "ln -sf $(awk '$2==\"/\"{print $1}' /proc/mounts) /tmp/root"
    result = measure(runner, Prepare("prepare", f"{link}; {guard('/tmp/root', '')}", 20), FINE)
    assert result.status is Status.FAILED
    assert "holds the mounted root" in result.failures[0].message
    assert_usable(runner)


# What a driver's benchmark must see for itself, or clear away


def test_a_gadget_that_a_killed_run_left_is_taken_away(runner):
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
