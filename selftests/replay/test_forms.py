"""Boots of forms that boards are known to have, composed in words of our own."""

import re
import time

import pytest

from evmperf.benchmarks.families.boot import condition, readings
from evmperf.boards.console.marks import Phase
from evmperf.model.errors import BoardError, Kind, RefusedOutput
from selftests.replay import texts
from selftests.support.consoles import verdict
from selftests.support.fakeboard import FakeBoard
from selftests.support.replayboard import Play, replay, replay_bench

QUICK = {"silence_timeout": 2, "kernel_timeout": 10, "boot_timeout": 5, "uboot_timeout": 10}
INIT = "init=/bin/sh"


def boot(linux, arguments="", *, board="am64x", medium="sd", **play):
    outcome = replay(Play(texts.LOADER, linux, **play), board, arguments=arguments, medium=medium, **QUICK)
    return outcome.boot


def check_lab_failure(boot, sentence):
    assert boot.error is not None
    assert boot.error.kind is Kind.LAB
    assert re.search(sentence, str(boot.error))


# What booted is what was asked for


def test_kernel_arguments_survive_scripts_that_set_optargs():
    found = boot(texts.INIT_SHELL, INIT, environment=texts.ARGS_ALL)
    assert found.error is None
    assert readings(found)[0].metric == "boot_time"


def test_kernel_arguments_that_do_not_arrive_are_no_boot_time():
    # A script that cannot be typed at the prompt again, as it has quotes of its own.
    scripts = {**texts.ARGS_ALL, "args_all": "setenv optargs earlycon; echo 'ready'"}
    found = boot(texts.INIT_SHELL, INIT, environment=scripts)
    check_lab_failure(found, "booted without init=/bin/sh .*args_all.*its command line is 'console")


def test_a_quiet_kernel_is_asked_for_its_arguments():
    shell = b"\r\nStarting kernel ...\r\n\r\nsh: no job control\r\nsh-5.2# "
    good = {"cmdline": f"console=ttyS2 quiet {INIT}", "root": "../mmcblk1p2", "type": "SD"}
    assert boot(shell, INIT, system=good).error is None
    bad = {**good, "cmdline": "console=ttyS2 quiet"}
    check_lab_failure(boot(shell, INIT, system=bad), "booted without init=/bin/sh")


@pytest.mark.parametrize(("linux", "medium"), [(texts.SD, "sd"), (texts.EMMC, "emmc")])
def test_the_right_medium_is_taken(linux, medium):
    assert boot(linux, medium=medium).error is None


@pytest.mark.parametrize(("linux", "medium"), [(texts.EMMC, "sd"), (texts.SD, "emmc")])
def test_the_wrong_medium_is_no_boot_time(linux, medium):
    check_lab_failure(boot(linux, medium=medium), f"another medium than {medium}: its root: mmcblk")


@pytest.mark.parametrize(("kind", "fits"), [("SD", True), ("MMC", False), ("", False)])
def test_a_quiet_kernel_is_asked_for_its_root(kind, fits):
    system = {"cmdline": "quiet", "root": "../block/mmcblk1/mmcblk1p2", "type": kind}
    found = boot(texts.QUIET, system=system)
    assert (found.error is None) == fits
    assert Phase.PROMPT in found.marks, "the mark is taken before"


def test_a_lab_whose_boots_are_wrong_counts_them_as_failed_cycles_and_goes_on():
    with replay_bench(Play(texts.LOADER, texts.EMMC), "am64x", medium="sd", **QUICK) as (_, bench):
        for _ in range(2):
            check_lab_failure(bench.cold_boot(""), "another medium")


# Prompts


@pytest.mark.parametrize("before", [b"", b"Line 1 # of 3\r\n"])
def test_a_shell_with_bracketed_paste_is_found_and_no_line_with_a_hash(before):
    found = boot(texts.INIT_SHELL.replace(b"sh: no job", before + b"sh: no job"), INIT)
    assert found.error is None
    assert found.marks[Phase.PROMPT].text.endswith("sh-5.2# ")
    assert found.marks[Phase.INIT_STARTED].text == "Run /bin/sh as init"


def test_a_prompt_that_a_message_cut_is_asked_for_and_has_no_time():
    found = boot(texts.CUT_LOGIN)
    assert found.error is None
    assert Phase.PROMPT not in found.marks
    with pytest.raises(RefusedOutput, match="came only on request"):
        readings(found)


@pytest.mark.parametrize(
    "asked",
    [
        b"\x1bP+q544e\x1b\\\x1b[32766;32766H\x1b[6n",
        b"\x1b]3008;start=01;type=boot\x1b\\",
        b"\x1b[!p\x1b]104\x07",
    ],
)
def test_what_systemd_asks_the_terminal_is_no_text(asked):
    assert (
        verdict(texts.LOADER + texts.SD.replace(b"our-board login: ", asked + b"our-board login: ")).what
        == "booted"
    )
    late = verdict(texts.LOADER + texts.SD.removesuffix(texts.LOGIN) + b"Hello\r\n" + asked)
    assert "the last line is 'Hello'" in late.says


def test_a_console_that_the_board_powers_is_not_lost_while_it_is_off():
    with replay_bench(Play(texts.LOADER, texts.SD), "am64x", medium="sd", **QUICK) as (board, bench):
        switch = board.switch

        def with_adapter(on):
            if not on and board.is_on:
                board.lose_console(0.3)
                time.sleep(1.5)
            switch(on)

        board.switch = with_adapter
        for _ in range(2):
            bench.cold_boot("")
        assert [boot.error for boot in bench.boots()] == [None, None]


def test_a_last_login_is_no_login_prompt():
    linux = texts.SD.replace(b"our-board login: ", b"Last login: Mon\r\n\r\nour-board login: ")
    found = boot(linux)
    assert found.error is None
    assert linux.endswith(found.marks[Phase.PROMPT].text.encode())
    late = boot(linux[: linux.index(b"our-board login: ")])
    assert late.error is not None


def test_an_arrow_in_the_middle_of_a_line_is_no_prompt():
    dump = b"crc32 for 80000000 ... 80ffffff ==> 31b6f8fb\r\n" + texts.SD
    assert boot(dump).error is None


def test_a_getty_that_forgets_the_name_gets_it_again(monkeypatch):
    names = []

    def forgets(board, line):
        board.say(f"{line}\r\n")
        names.extend([line] if line else [])
        if not line:
            board.say("\r\nOwn Linux, login: root, password: none\r\n\r\nour-board login: ")
        elif len(names) > 1:
            board._log_in()

    monkeypatch.setattr(FakeBoard, "_in_login", forgets)
    system = {"cmdline": "quiet", "root": "../mmcblk1p2", "type": "SD"}
    assert boot(texts.QUIET, system=system).error is None
    assert names == ["root", "root"]


# Time-outs


@pytest.mark.parametrize(
    ("linux", "sentence", "kind"),
    [
        (b"U-Boot menu\r\n1:\town\r\nEnter choice: ", "boot hangs.*a menu waits", Kind.LAB),
        (texts.kernel() + b"own: probe failed\r\nown: ok\r\n", "own: ok.*probe failed", Kind.BOARD),
    ],
)
def test_a_boot_that_ends_by_time_says_why(linux, sentence, kind):
    error = boot(linux).error
    assert error is not None
    assert re.search(sentence, str(error))
    assert error.kind is kind


# Marks


def test_a_quiet_boot_has_no_marks_of_the_kernel():
    found = boot(texts.QUIET, system={"cmdline": "quiet", "root": "../mmcblk1p2", "type": "SD"})
    seen = set(found.marks)
    assert not seen & {Phase.FIRST_KERNEL_LINE, Phase.ROOT_MOUNTED, Phase.INIT_STARTED}
    assert {"boot_time"} <= {r.metric for r in readings(found)}
    assert not {"kernel", "userland"} & {r.metric for r in readings(found)}


def test_sysvinit_is_an_init():
    assert boot(texts.SYSVINIT).marks[Phase.INIT_STARTED].text == "INIT: version"


def test_an_efi_boot_has_a_time_of_its_own():
    found = boot(texts.EFI)
    assert found.error is None
    assert Phase.STARTING_KERNEL not in found.marks
    assert condition(found) == "EFI stub"
    assert readings(found)[0].metric == "boot_time"
    assert condition(boot(texts.SD)) == ""


# Failures, at once


@pytest.mark.parametrize(
    ("linux", "sentence"),
    [
        (b"MMC: no card present\r\nBad Linux ARM64 Image magic!\r\n=> ", "no card present"),
        (b"=> ", "it gave no reason"),
        (b"No more bootdevs\r\n=> ", "nothing bootable"),  # the prompt comes in the same piece
        (texts.kernel() + b"E/TC:0 0 Panic 'x' at core/y.c:1 <z>\r\n", "OP-TEE panic"),
    ],
)
def test_a_failed_boot_is_named_at_once(linux, sentence):
    outcome = replay(Play(texts.LOADER, linux), "am64x", medium="sd")
    assert isinstance(outcome.boot.error, BoardError)
    assert re.search(sentence, str(outcome.boot.error))
    assert outcome.late_s < 5


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (texts.LOADER[: texts.LOADER.index(b"Starting ATF")] * 6, "boot loader in a loop"),
        (b"", "no output in 2 s .*: check that the board has"),
    ],
)
def test_a_boot_loader_that_does_not_get_to_its_prompt_is_named(text, sentence):
    outcome = replay(Play(text), "am64x", **QUICK)
    assert re.search(sentence, str(outcome.boot.error))


def test_a_countdown_that_cannot_be_stopped_is_named():
    found = replay(Play(texts.LOADER, texts.SD, stoppable=False), "am64x", **QUICK).boot
    check_lab_failure(found, "autoboot was not stopped.*bootdelay")


@pytest.mark.parametrize("text", [b"C" * 40, texts.LOADER[:200] + b"Authentication failed!\r\n"])
def test_what_a_power_cycle_cannot_heal_is_not_tried_again(text):
    with replay_bench(Play(text), "am64x", retries=2, **QUICK) as (_, bench):
        with pytest.raises(BoardError):
            bench.uboot()
        assert bench.power_cycles == 1
