"""Boots of forms that boards are known to have, composed in words of our own; what the strategy itself does
is played to it.
"""

import re
import time

import pytest

from evmperf.benchmarks.families.boot import condition, readings
from evmperf.boards.console import booted
from evmperf.boards.console.marks import ObservedBoot, Phase
from evmperf.model.errors import BoardError, Kind, RefusedOutput
from selftests.replay import texts
from selftests.support.consoles import marks, verdict
from selftests.support.fakeboard import FakeBoard
from selftests.support.replayboard import Play, replay, replay_bench

QUICK = {"silence_timeout": 2, "kernel_timeout": 10, "boot_timeout": 5, "uboot_timeout": 10}
INIT = "init=/bin/sh"
ON_SD = {"cmdline": "quiet", "root": "../block/mmcblk1/mmcblk1p2", "type": "SD"}
"""What a quiet system answers."""
LOGIN = b"our-board login: "


def boot(linux, arguments="", *, medium="sd", **play):
    outcome = replay(Play(texts.LOADER, linux, **play), "am64x", arguments=arguments, medium=medium, **QUICK)
    return outcome.boot


def check_lab_failure(boot, sentence):
    assert boot.error is not None
    assert boot.error.kind is Kind.LAB
    assert re.search(sentence, str(boot.error))


# What booted is what was asked for


def test_kernel_arguments_survive_scripts_that_set_optargs():
    """In a shell with bracketed paste, which is found, and behind a line with a hash, which is no prompt."""
    shell = texts.INIT_SHELL.replace(b"sh: no job", b"Line 1 # of 3\r\nsh: no job")
    found = boot(shell, INIT, environment=texts.ARGS_ALL)
    assert found.error is None
    assert readings(found)[0].metric == "boot_time"
    assert found.marks[Phase.PROMPT].text.endswith("sh-5.2# ")
    assert found.marks[Phase.INIT_STARTED].text == "Run /bin/sh as init"


def test_a_quiet_kernel_is_asked_for_its_arguments():
    shell = b"\r\nStarting kernel ...\r\n\r\nsh: no job control\r\nsh-5.2# "
    system = {**ON_SD, "cmdline": f"console=ttyS2 quiet {INIT}"}
    assert boot(shell, INIT, system=system).error is None


@pytest.mark.parametrize("medium", ["sd", "emmc"])
@pytest.mark.parametrize(("linux", "kind"), [(texts.SD, "SD"), (texts.EMMC, "MMC"), (texts.QUIET, "")])
def test_a_medium_is_known_by_its_root(medium, linux, kind):
    answer = f"cmdline: quiet\nroot: ../block/mmcblk1/mmcblk1p2\ntype: {kind}\n"
    for system in (booted.shown(linux.decode()), booted.answered(answer)):
        found = booted.complaint(medium, booted.ROOTS[medium], "", system, ())
        assert (found is None) == (kind == {"sd": "SD", "emmc": "MMC"}[medium])


def test_a_quiet_kernel_is_asked_for_its_root_and_has_no_marks():
    found = boot(texts.QUIET, system=ON_SD)
    assert found.error is None
    assert not {*found.marks} & {Phase.FIRST_KERNEL_LINE, Phase.ROOT_MOUNTED, Phase.INIT_STARTED}
    metrics = {reading.metric for reading in readings(found)}
    assert "boot_time" in metrics
    assert not {"kernel", "userland"} & metrics


def test_a_lab_whose_boots_are_of_another_medium_counts_them_as_failed_cycles_and_goes_on():
    with replay_bench(Play(texts.LOADER, texts.EMMC), "am64x", medium="sd", **QUICK) as (_, bench):
        for _ in range(2):
            found = bench.cold_boot("")
            check_lab_failure(found, "another medium than sd: its root: mmcblk")
            assert Phase.PROMPT in found.marks, "the mark is taken before"


# Prompts


def test_an_arrow_in_the_middle_of_a_line_is_no_prompt():
    dump = b"crc32 for 80000000 ... 80ffffff ==> 31b6f8fb\r\n" + texts.EMMC
    assert boot(dump, medium="emmc").error is None


def test_a_prompt_that_a_message_cut_is_asked_for_and_has_no_time():
    found = boot(texts.CUT_LOGIN)
    assert found.error is None
    assert Phase.PROMPT not in found.marks
    with pytest.raises(RefusedOutput, match="came only on request"):
        readings(found)


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
    linux = texts.SD.replace(LOGIN, b"Last login: Mon\r\n\r\n" + LOGIN)
    found = boot(linux)
    assert found.error is None
    assert linux.endswith(found.marks[Phase.PROMPT].text.encode())
    assert verdict(texts.LOADER + linux[: linux.index(LOGIN)]).what == "time"


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
    assert boot(texts.QUIET, system=ON_SD).error is None
    assert names == ["root", "root"]


# Marks


def test_sysvinit_is_an_init():
    assert marks(texts.LOADER + texts.SYSVINIT)[Phase.INIT_STARTED].text == "INIT: version"


@pytest.mark.parametrize(("linux", "said"), [(texts.EFI, "EFI stub"), (texts.SD, "")])
def test_an_efi_boot_has_a_time_of_its_own(linux, said):
    assert verdict(texts.LOADER + linux).what == "booted"
    found = ObservedBoot("booted", "", 1, 1.0, marks(texts.LOADER + linux))
    assert (Phase.STARTING_KERNEL in found.marks) == (not said)
    assert condition(found) == said
    assert readings(found)[0].metric == "boot_time"


# Failures


def test_a_board_that_says_nothing_is_named():
    outcome = replay(Play(b""), "am64x", **QUICK)
    assert re.search("no output in 2 s .*: check that the board has", str(outcome.boot.error))


def test_a_countdown_that_cannot_be_stopped_is_named():
    found = replay(Play(texts.LOADER, texts.SD, stoppable=False), "am64x", **QUICK).boot
    check_lab_failure(found, "autoboot was not stopped.*bootdelay")


def test_what_a_power_cycle_cannot_heal_is_not_tried_again():
    with replay_bench(Play(b"C" * 40), "am64x", retries=2, **QUICK) as (_, bench):
        with pytest.raises(BoardError):
            bench.uboot()
        assert bench.power_cycles == 1
