"""Strategy, console and shells against a scripted board: each fault by its name and kind."""

import logging
import re
import time
import traceback

import pytest
from labgrid.driver import ExecutionError
from labgrid.driver.powerdriver import NetworkPowerDriver
from pexpect import TIMEOUT

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.families import boot as boot_readings
from evmperf.boards.console import record as console
from evmperf.boards.console.marks import Phase
from evmperf.lab import shell as shell_module
from evmperf.lab.shell import CommandShell, CommandTimeout
from evmperf.lab.stamper import StampedPort
from evmperf.model.errors import BoardError, UsageError
from selftests.support import programs

# What works


def test_what_a_command_prints_comes_back_whole(open_bench):
    shell = open_bench().shell()
    for command in (
        "printf 'no end of line'",
        "true",
        "printf 'root@virtual-evm:~# not the prompt\\n'",
        "printf ' 0\\n 17\\n'",
        "seq 20000",
        "echo hello; echo wrong >&2; exit 3",
    ):
        here = programs.run("sh", "-c", f"exec 2>&1; {command}")
        reply = shell.run(command, 10)
        assert (reply.status, reply.text) == (here.returncode, here.stdout)


def test_a_shell_that_could_not_be_set_up_is_logged_in_to_again(open_bench, monkeypatch):
    bench = open_bench()
    monkeypatch.setattr(shell_module, "_PROMPT_S", 0)
    with pytest.raises(BoardError):
        bench.shell()
    monkeypatch.setattr(shell_module, "_PROMPT_S", 5)
    assert bench.shell().run("echo hello", 5).text == "hello\n"


def test_a_boot_that_times_its_initcalls_is_asked_for_them(open_bench, fake):
    bench = open_bench()
    for arguments in ("", "initcall_debug"):
        assert bench.cold_boot(arguments).error is None
        assert any("dmesg | grep" in line for line in fake.typed) == bool(arguments)


@pytest.mark.alone
def test_being_there_already_costs_nothing_and_off_is_off(open_bench, fake):
    bench = open_bench()
    assert bench.shell() is bench.shell()
    assert bench.power_cycles == 1
    assert [boot.goal for boot in bench.boots()] == ["shell"]
    assert bench.boots() == []
    bench.off()
    assert not fake.is_on
    assert "power: off" in bench.post_mortem()


def test_uboot_and_linux_follow_each_other(open_bench):
    bench = open_bench()
    assert bench.uboot().run("version", 5).text == "fine"
    assert bench.uboot().run("fail", 5).status == 1
    assert bench.shell().run("echo hello", 5).text == "hello\n"
    assert bench.uboot().run("version", 5).text == "fine"
    # out of U-Boot's prompt it boots without a power cycle of its own
    assert [boot.goal for boot in bench.boots()] == ["uboot", "shell", "uboot"]


def test_a_cold_boot_has_its_marks_and_choses_medium_and_arguments(open_bench, fake):
    bench = open_bench()
    boots = [bench.cold_boot("") for _ in range(2)]
    assert boots[0].error is None
    marks = boots[0].marks
    assert {Phase.POWER_ON, Phase.UBOOT_BANNER, Phase.STARTING_KERNEL, Phase.PROMPT} <= set(marks)
    stamps = [mark.mono_ns for mark in marks.values()]
    assert stamps == sorted(stamps)
    assert "setenv mmcdev 1; setenv bootpart 1:2; setenv optargs ''" in " ".join(fake.typed)
    # Each is a power cycle, and a login afterwards no boot of its own.
    assert len({boot.marks[Phase.POWER_ON].mono_ns for boot in boots}) == bench.power_cycles == 2
    bench.shell()
    assert [boot.goal for boot in bench.boots()] == ["booted", "booted"]


def test_a_cold_boot_into_a_shell_ends_at_its_prompt(open_bench, fake):
    bench = open_bench()
    boot = bench.cold_boot("init=/bin/sh")
    assert (boot.error, boot.kernel_arguments) == (None, "init=/bin/sh")
    assert boot.marks[Phase.PROMPT].text.strip() == "~ #"
    # that shell is not the one benchmarks run in: the board is booted again
    assert bench.shell().run("echo hello", 5).text == "hello\n"
    arguments = [line.partition("setenv optargs ")[2].partition(";")[0] for line in fake.typed]
    assert [given for given in arguments if given] == ["'init=/bin/sh'", "''"]
    assert bench.power_cycles == 2


def test_a_switch_that_cycles_in_one_request_is_seen_to_switch_on(open_bench, fake, monkeypatch):
    def cycle(_):
        fake.switch(False)
        fake.switch(True)

    monkeypatch.setattr(NetworkPowerDriver, "cycle", cycle)
    bench = open_bench()
    bench.shell()
    boot = bench.cold_boot("")
    assert boot.error is None
    assert Phase.POWER_ON in boot.marks


@pytest.mark.parametrize(("state", "there"), [("shell", "shell"), ("shell", "login"), ("uboot", "uboot")])
def test_a_board_that_runs_already_is_taken_as_it_is(open_bench, fake, state, there):
    bench = open_bench()
    fake._state = there
    bench.force(state)
    assert getattr(bench, state)().run("true", 5).status == 0
    assert bench.power_cycles == 0


def test_a_state_that_there_is_not_and_a_board_that_is_not_there_are_named(open_bench):
    bench = open_bench(EvmShellDriver={"login_timeout": 1})
    with pytest.raises(UsageError, match=r"shel: .*known are off"):
        bench.force("shel")
    with pytest.raises(BoardError, match="does not answer"):
        bench.force("shell")


# Boots that fail


@pytest.mark.parametrize(
    ("going", "reason", "shown"),
    [
        ("panic", "Kernel panic - not syncing", "Attempted to kill"),
        ("oops", "kernel oops .*: Internal error", "[#1] PREEMPT"),
        ("reset", "silent reset .*: U-Boot 2025.01", "U-Boot 2025.01"),
        ("stuck", "no login prompt within 2 s", "A start job is running"),
    ],
)
def test_a_boot_that_fails_is_named_with_phase_and_post_mortem(open_bench, fake, going, reason, shown):
    fake.boots = [going]
    bench = open_bench(K3BootStrategy={"boot_timeout": 2 if going == "stuck" else 30})
    boot = bench.cold_boot("")
    assert isinstance(boot.error, BoardError)
    assert re.search(reason, str(boot.error))
    # The alarm is raised before the text that came with it is looked through.
    assert boot.phase in ("kernel start", "login prompt")
    assert boot.post_mortem.startswith("power: on\n")
    assert shown in boot.post_mortem
    assert Phase.STARTING_KERNEL in boot.marks
    assert Phase.PROMPT not in boot.marks
    assert bench.cold_boot("").error is None


def test_a_mute_uboot_is_a_board_error_at_the_uboot_prompt(open_bench, fake):
    fake.boots = ["mute"]
    bench = open_bench(K3BootStrategy={"uboot_timeout": 1})
    with pytest.raises(BoardError, match=r"U-Boot prompt within .* s; "):
        bench.uboot()
    (boot,) = bench.boots()
    assert boot.phase == "U-Boot prompt"
    assert set(boot.marks) == {Phase.POWER_ON, Phase.FIRST_OUTPUT, Phase.UBOOT_BANNER}


def test_a_failed_boot_is_tried_again_so_often_and_a_cold_boot_not(open_bench, fake):
    fake.boots = ["panic", "reset"]
    bench = open_bench(K3BootStrategy={"retries": 2})
    assert bench.shell().run("echo hello", 5).text == "hello\n"
    boots = bench.boots()
    assert [str(boot.error).split(" on the")[0] for boot in boots] == ["kernel panic", "silent reset", "None"]
    assert all(isinstance(boot.error, BoardError) and boot.phase for boot in boots[:2])
    assert "panic" in boots[0].post_mortem
    assert "panic" not in boots[1].post_mortem
    assert boots[2].phase == boots[2].post_mortem == ""
    fake.boots = ["panic"] * 10
    bench.off()
    with pytest.raises(BoardError, match="kernel panic on the console"):
        bench.shell()
    assert len(bench.boots()) == 3
    assert len(fake.boots) == 7
    assert isinstance(bench.cold_boot("").error, BoardError)
    assert len(fake.boots) == 6


# Logins that fail


def test_a_wrong_password_is_named_and_not_tried_again(open_bench, fake):
    fake.password = "right"
    bench = open_bench(EvmShellDriver={"password": "wrong"}, K3BootStrategy={"retries": 2})
    with pytest.raises(BoardError, match=r"login .*root: check `username`"):
        bench.shell()
    (boot,) = bench.boots()
    assert boot.phase == "shell prompt"
    assert "Login incorrect" in boot.post_mortem


@pytest.mark.parametrize("login", ["wrong", "right, echoed"])
def test_of_a_password_only_its_length_is_kept(open_bench, fake, tmp_path, caplog, login):
    secret, echoes = "roroot-Tr0ub4dor", "echoed" in login
    fake.password, fake.echoes = secret if "right" in login else "another", echoes
    bench = open_bench(EvmShellDriver={"password": secret}, StampedSerialDriver={"txdelay": 0.001})
    log = tmp_path / "console.log"
    bench.record_console(log)
    said = ""
    with caplog.at_level(logging.DEBUG):
        try:
            bench.shell().run("echo hello", 5)
        except BoardError as error:
            said = f"{error!r} {traceback.format_exception(error)}"
    assert "> root" in caplog.text  # Labgrid's own log of its steps
    assert fake.typed.count(secret) == 1
    records = list(console.read(log))
    typed = b"".join(r.data for r in records if r.kind == ">")
    board = b"".join(r.data for r in records if r.kind == "<")
    assert [r.data for r in records if r.kind == "#"][:2] == [b"power off", b"power on"]
    asterisks = b"*" * len(secret)
    assert b"\n" + asterisks + b"\n" in typed
    assert (asterisks in board) == echoes
    shell = bench._target.get_driver("EvmShellDriver", activate=False)
    kept = (log.read_text(), said, caplog.text, repr(shell), repr(bench.boots()), *bench.console_lines())
    assert [text for text in kept if secret[2:] in text] == []
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_password_that_the_board_file_lacks_is_named(open_bench, fake):
    fake.password = "right"
    with pytest.raises(BoardError, match="root: set `password`"):
        open_bench().shell()


def test_a_prompt_that_does_not_fit_is_shown_with_what_came(open_bench, fake):
    fake.prompt = "sh-5.2$ "
    bench = open_bench(EvmShellDriver={"login_timeout": 2}, K3BootStrategy={"retries": 2})
    with pytest.raises(BoardError, match=r"no prompt like .*root@.*shows .*sh-5\.2\$.*set `prompt`"):
        bench.shell()
    assert bench.power_cycles == 1


# The record


def test_a_boot_has_its_prompt_on_a_host_that_is_kept_from_running(open_bench, fake, monkeypatch):
    """32 boards on two cores: Linux has started long before its `boot` is written down."""
    fake.pace_s = 0.5
    send = StampedPort.write

    def send_and_be_kept(port, data):
        send(port, data)
        time.sleep(0.3)

    monkeypatch.setattr(StampedPort, "write", send_and_be_kept)
    boot = open_bench().cold_boot("")
    assert {Phase.STARTING_KERNEL, Phase.PROMPT} <= set(boot.marks)


def test_a_boot_without_uboot_has_a_boot_time_of_its_own(open_bench, fake):
    fake.boots = ["falcon", "falcon"]
    bench = open_bench({"flow": "falcon"})
    boot = bench.cold_boot("")
    assert boot.error is None
    assert Phase.UBOOT_BANNER not in boot.marks
    times = {reading.metric: reading.value for reading in boot_readings.readings(boot)}
    at = {phase: mark.mono_ns / 1e9 for phase, mark in boot.marks.items()}
    assert times["boot_time"] == pytest.approx(at[Phase.PROMPT] - at[Phase.FIRST_KERNEL_LINE])
    assert times["output_to_kernel"] == pytest.approx(at[Phase.FIRST_KERNEL_LINE] - at[Phase.FIRST_OUTPUT])
    assert boot_readings.condition(boot).endswith("SPL, no U-Boot")
    assert bench.shell().run("echo hello", 5).text == "hello\n"
    with pytest.raises(UsageError, match="has no U-Boot"):
        bench.uboot()
    boots = catalogue.benchmark("boot_time_mmcsd")
    reasons = [boots.unsupported(bench.board, case) for case in boots.cases("quick")]
    assert [bool(reason) for reason in reasons] == [False, True]  # kernel arguments are U-Boot's to give


def test_a_boot_without_uboot_is_refused_where_the_board_file_says_nothing_of_it(open_bench, fake):
    fake.boots = ["falcon"]
    boot = open_bench().cold_boot("")
    assert "falcon mode" in str(boot.error)
    assert "options.boot.flow" in str(boot.error)


def test_what_labgrids_users_type_works_with_evmperfs_driver(open_bench, tmp_path):
    bench = open_bench()
    bench.shell()
    driver, sent = bench._strategy.shell, tmp_path / "sent"
    sent.write_bytes(bytes(range(256)) * 9)
    driver.put(str(sent), f"{tmp_path}/there")
    driver.get(f"{tmp_path}/there", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == (tmp_path / "there").read_bytes() == sent.read_bytes()
    assert sorted(path.name for path in tmp_path.glob("there*")) == ["there"]
    assert issubclass(CommandTimeout, TIMEOUT)  # what a lab's `except TIMEOUT` is for
    shell = CommandShell(bench.shell())
    lines, errors, status = shell.run("echo hello; exit 3")
    assert (lines, errors, status) == (["hello"], [], 3)
    assert shell.run_check("echo hello") == ["hello"]
    with pytest.raises(ExecutionError):
        shell.run_check("exit 3")
