"""Labs and commands that fail, against a scripted board: each fault by its name and kind."""

import os
import re
import threading

import pytest
from labgrid.driver import ShellDriver
from labgrid.driver.power import rest
from labgrid.step import steps

from evmperf.boards.console import powering
from evmperf.lab import bench
from evmperf.lab import shell as shell_module
from evmperf.lab.console import ConsoleFlood
from evmperf.lab.shell import EvmShellDriver
from evmperf.model import limits
from evmperf.model.errors import BoardError, Interrupted, LabError, RefusedOutput, ToolError, was_ctrl_c
from pytest_evmperf import session
from pytest_evmperf.plugin import SESSION
from selftests.instruments.speed.boards import burners

# A lab that fails


def test_a_virtual_evm_has_longer_limits_on_a_busy_host_and_the_failure_says_so(open_bench, fake):
    fake.boots = ["stuck"]
    said = r"no login prompt within (\d+) s.*; the host is busy.*times as long"
    # As on a laptop that compiles.
    with burners(4 * (os.cpu_count() or 1)), pytest.raises(BoardError, match=said) as e:
        open_bench(virtual=True, K3BootStrategy={"boot_timeout": 1}).shell()
    assert int(re.search(r"within (\d+) s", str(e.value))[1]) >= 3


def test_a_power_switch_that_never_answers_is_a_lab_error(open_bench, switch):
    bench = open_bench(K3BootStrategy={"power_timeout": 1})
    switch.answering.clear()
    with pytest.raises(LabError, match=r"power switch .* 1 s"):
        bench.uboot()
    assert "power: unknown" in bench.boots()[0].post_mortem


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("relay 0 is stuck", r"power switch.*500.*relay 0 is stuck"),
        (None, "the power switch does not answer"),  # it is gone
    ],
)
def test_a_power_switch_that_fails_is_a_lab_error(open_bench, switch, broken, says):
    bench = open_bench()
    switch.broken = broken
    if not broken:
        switch.close()
    with pytest.raises(LabError, match=says):
        bench.cold_boot("")
    (boot,) = bench.boots()
    assert isinstance(boot.error, LabError)
    assert boot.phase == "power switch"
    assert boot.post_mortem.startswith("power: unknown")


def test_a_power_driver_that_fails_its_own_way_is_a_lab_error_too(open_bench, monkeypatch):
    def power_set(*_):
        raise RuntimeError("snmpset: Timeout: No Response from 10.0.0.3")

    monkeypatch.setattr(rest, "power_set", power_set)
    bench = open_bench()
    for ask in (bench.shell, lambda: bench.cold_boot(""), bench.off):
        with pytest.raises(LabError, match="snmpset: Timeout"):
            ask()


def test_a_console_server_that_is_not_there_is_a_lab_error(open_bench, fake):
    fake.close()
    bench = open_bench()
    for ask in (bench.shell, lambda: bench.cold_boot("")):
        with pytest.raises(LabError, match=r"console at 127.0.0.1:.* cannot be opened"):
            ask()


def test_a_console_lost_in_a_command_interrupts_it_and_the_shell_goes_on(open_bench, fake):
    bench = open_bench()
    shell = bench.shell()
    for fake.away_s in (0.0, 0.3):
        with pytest.raises(Interrupted, match="the console was away"):
            shell.run("lose", 10)
        assert shell.run("echo hello", 5).text == "hello\n"
    assert bench.power_cycles == 1


def test_a_console_that_stays_away_is_a_lab_error(open_bench, fake):
    fake.away_s = None
    shell = open_bench(StampedSerialDriver={"reconnect": 2.0}).shell()
    with pytest.raises(LabError, match=r"did not come back in 2 s: check the console server") as e:
        shell.run("lose", 10)
    assert not isinstance(e.value, Interrupted)


def test_a_console_lost_between_commands_is_said_once(open_bench, fake):
    bench = open_bench()
    shell = bench.shell()
    driver = bench._console
    fake.lose_console(0.0)
    with driver._news:
        assert driver._news.wait_for(lambda: driver._error, 5)
    with pytest.raises(Interrupted):
        shell.run("echo hello", 5)
    assert shell.run("echo hello", 5).text == "hello\n"


# Commands that fail


def test_a_command_that_hangs_is_interrupted_and_the_shell_goes_on(open_bench):
    shell = open_bench().shell()
    with pytest.raises(ToolError, match=r"`hang` did not end within 0.2 s: it was interrupted"):
        shell.run("hang", 0.2)
    assert shell.run("echo hello", 5).text == "hello\n"


@pytest.mark.parametrize("driver", [EvmShellDriver, ShellDriver])
def test_a_board_whose_power_went_off_ends_its_command_within_seconds(open_bench, fake, monkeypatch, driver):
    monkeypatch.setattr(powering, "_LOOK_S", 0.3)
    if driver is ShellDriver:
        monkeypatch.setattr(EvmShellDriver, "_run", driver._run)
        monkeypatch.setattr(bench, "EvmShellDriver", ())
    shell = open_bench().shell()
    assert shell.run("sleep 1; echo slow", 20).text.strip() == "slow"
    threading.Timer(0.5, fake.switch, [False]).start()
    with pytest.raises(BoardError, match="`hang`: its power switch says off"):
        shell.run("hang", 600)


@pytest.mark.parametrize(
    ("where", "command", "name"),
    [
        ("uboot", "reset", "silent reset"),
        ("shell", "reset", "silent reset"),
        ("shell", "panic", "kernel panic"),
    ],
)
def test_a_board_that_dies_in_a_command_is_named_at_once_and_power_cycled(open_bench, where, command, name):
    bench = open_bench()
    reach = getattr(bench, where)
    with pytest.raises(BoardError, match=f"{name} on the console"):
        reach().run(command, 600)
    bench.abandon()
    assert reach().run("true", 5).status == 0
    assert bench.power_cycles == 2


@pytest.mark.parametrize("where", ["uboot", "shell"])
def test_a_terminal_that_cannot_be_interrupted_is_a_board_error(open_bench, fake, where):
    prompt = getattr(open_bench(), where)()
    fake.ignores_ctrl_c = True
    with pytest.raises(BoardError, match="must be reset"):
        prompt.run("hang", 0.2)


def test_a_uboot_command_that_fails_costs_itself_alone(open_bench):
    uboot = open_bench().uboot()
    for command, within_s, error, says in (
        ("hang", 0.2, ToolError, r"`hang` did not end within 0.2 s in U-Boot"),
        ("garble", 5, RefusedOutput, "answer to `garble` is garbled"),
        ("lose", 10, Interrupted, "the console was away"),
    ):
        with pytest.raises(error, match=says):
            uboot.run(command, within_s)
        assert uboot.run("version", 5).text == "fine"


# A flood


@pytest.fixture
def flooding(fake):
    """Let the board say the same line when it boots, until its power is switched; returns how to
    begin.
    """
    ended = threading.Event()

    def flood():
        while "boot" not in fake.typed:
            if ended.wait(0.01):
                return
        switched = len(fake.switched)
        while not ended.is_set() and len(fake.switched) == switched:
            fake.say(b"[   12.345678] mmc0: error -110 whilst initialising SD card\r\n" * 500)

    thread = threading.Thread(target=flood, daemon=True)
    yield thread.start
    ended.set()
    if thread.ident:
        thread.join(10)


def test_a_command_that_prints_without_end_is_interrupted_and_the_shell_lives(
    open_bench, monkeypatch, tmp_path
):
    monkeypatch.setattr(limits, "REPLY_BYTES", limits.MIB)
    monkeypatch.setattr(shell_module, "_PROMPT_S", 10)
    shell = open_bench().shell()
    (tmp_path / "much").write_bytes(b"all work and no play\n" * 100_000)
    with pytest.raises(ToolError, match=r"printed more than 1 MiB.*it was interrupted"):
        shell.run(f"cat {tmp_path}/much", 30)
    assert shell.run("echo still here", 5).text == "still here\n"


def test_a_flood_at_the_login_is_a_fault_of_the_board(open_bench, fake, monkeypatch, flooding):
    monkeypatch.setattr(limits, "UNREAD_BYTES", limits.MIB)
    fake.boots = ["stuck"]
    bench = open_bench(K3BootStrategy={"boot_timeout": 30})
    flooding()
    with pytest.raises(BoardError, match=r"floods its console|more than 1 MiB"):
        bench.shell()
    # The next power-on begins anew, though much of the flood is still on its way.
    assert bench.shell().run("echo again", 30).text == "again\n"


def test_what_nobody_looked_at_is_cut_and_said(open_bench, fake, monkeypatch):
    monkeypatch.setattr(limits, "UNREAD_BYTES", limits.MIB)
    bench = open_bench()
    shell = bench.shell()
    serial = bench._console
    fake.say(b"x" * (3 * limits.MIB))
    with serial._news:
        assert serial._news.wait_for(lambda: serial._error, 20)
        assert len(serial._buffer) <= limits.MIB
    with pytest.raises(ConsoleFlood, match="floods its console"):
        shell.run("echo lost", 5)
    said = [r.data for r in serial.history.records() if r.kind == "#"]
    assert any(b"bytes cut" in text for text in said)
    bench.abandon()
    assert bench.shell().run("echo again", 5).text == "again\n"


# Ctrl-C


def test_ctrl_c_between_two_lines_of_labgrids_steps_is_ctrl_c(open_bench, fake, monkeypatch):
    pop, stack = steps.pop, list(steps._stack)

    def interrupt(inner):
        monkeypatch.setattr(steps, "pop", pop)
        raise KeyboardInterrupt

    bench = open_bench(K3BootStrategy={"retries": 2})
    monkeypatch.setattr(steps, "pop", interrupt)
    with pytest.raises(KeyboardInterrupt):
        bench.shell()
    steps._stack[:] = stack
    assert fake.switched.count(True) <= 1, "no board is tried again after Ctrl-C"
    assert not bench.boots()


def test_errors_that_are_each_others_reason_have_an_end():
    lost, failed = LabError("the board was lost"), BoardError("no prompt")
    lost.__cause__, failed.__context__ = failed, lost
    assert not was_ctrl_c(lost)
    failed.__context__ = KeyboardInterrupt()
    assert was_ctrl_c(lost)


def test_measuring_ends_on_a_ctrl_c_that_came_out_as_an_assertion(request, monkeypatch):
    def assertion():
        try:
            raise KeyboardInterrupt
        finally:
            raise AssertionError("a step is not the last one")

    def plain():
        raise AssertionError("a figure is wrong")

    def ended(function):
        call = pytest.CallInfo.from_call(function, "call")
        session.pytest_runtest_makereport(request.node, call)

    ended(assertion)
    monkeypatch.setitem(request.config.stash, SESSION, None)
    ended(plain)
    with pytest.raises(KeyboardInterrupt):
        ended(assertion)
