"""Boots of forms that boards are known to have, played to the strategy, and consoles that are read again."""

import json
import re
import time

import pytest

from evmperf.benchmarks.families import boot as boot_readings
from evmperf.benchmarks.families.boot import condition, readings
from evmperf.boards.console import booted
from evmperf.boards.console.marks import ObservedBoot, Phase, find
from evmperf.boards.console.record import HEADER, POWER_ON, ConsoleRecord
from evmperf.commands.cli.main import main
from evmperf.measure.runs.spool import CONSOLE_LOG, Spool
from evmperf.model.errors import BoardError, Kind, RefusedOutput
from evmperf.model.run import Run
from selftests.replay import texts
from selftests.support import seeds
from selftests.support.consoles import marks, recorded, verdict
from selftests.support.fakeboard import FakeBoard
from selftests.support.replayboard import Play, replay, replay_bench
from selftests.support.texts import LOGIN

QUICK = {"silence_timeout": 2, "kernel_timeout": 10, "boot_timeout": 5, "uboot_timeout": 10}
INIT = "init=/bin/sh"
ON_SD = {"cmdline": "quiet", "root": "../block/mmcblk1/mmcblk1p2", "type": "SD"}
"""What a quiet system answers."""
ASKED = b"our-board login: "


def boot(linux, arguments="", *, medium="sd", **play):
    outcome = replay(Play(texts.LOADER, linux, **play), "am64x", arguments=arguments, medium=medium, **QUICK)
    return outcome.boot


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
            assert found.error.kind is Kind.LAB
            assert "another medium than sd: its root: mmcblk" in str(found.error)
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
    linux = texts.SD.replace(ASKED, b"Last login: Mon\r\n\r\n" + ASKED)
    found = boot(linux)
    assert found.error is None
    assert linux.endswith(found.marks[Phase.PROMPT].text.encode())
    assert verdict(texts.LOADER + linux[: linux.index(ASKED)]).what == "time"


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


def test_what_a_power_cycle_cannot_heal_is_not_tried_again():
    with replay_bench(Play(b"C" * 40), "am64x", retries=2, **QUICK) as (_, bench):
        with pytest.raises(BoardError):
            bench.uboot()
        assert bench.power_cycles == 1


BOOT = texts.LOADER + b"=> boot\r\n" + texts.SD
MS = 1_000_000


def records(text, begin=10**9, bound_ns=2 * MS):
    """A boot from its power-on, in pieces of 100 bytes, 10 ms apart."""
    pieces = [text[at : at + 100] for at in range(0, len(text), 100)]
    yield ConsoleRecord(begin, begin, "#", POWER_ON.encode())
    for number, piece in enumerate(pieces, 1):
        at = begin + number * 10 * MS
        yield ConsoleRecord(at, at, "<", piece, bound_ns)


def boot_record(kept):
    return boot_readings.record(ObservedBoot("booted", "", 1, 1.0, {mark.phase: mark for mark in kept}))


@pytest.fixture
def folder(tmp_path):
    """A run of two boots; of the first it had no mark of TF-A, and a prompt that was late."""
    spool = Spool(tmp_path, Run("a-run", "our-board", "quick"))
    first, second = list(records(BOOT)), list(records(BOOT, 5 * 10**9, 80 * MS))
    before = ConsoleRecord(1, 1, "#", b"power off")
    lines = [record.line() for record in (before, *first, *second)]
    (spool.folder / CONSOLE_LOG).write_bytes(HEADER + b"".join(lines))
    kept = [mark for phase, mark in find(first, LOGIN).items() if str(phase) != "tf_a"]
    spool.append(boot_record(kept))
    spool.append(boot_record(find(second, LOGIN).values()))
    return spool.folder


def test_what_is_different_today_is_said(folder, capsys):
    assert main(["doctor", "--replay", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "boot 3" not in said
    first, second = said.split("boot 2\n")
    assert "-> tf_a is new" in first
    assert first.count("->") == 1
    assert "starting_kernel may be 80 ms off" in second
    assert "within 80.0 ms" in second


def test_a_file_alone_is_read_and_json_is_for_programs(folder, tmp_path, capsys):
    (tmp_path / "sent").mkdir()
    alone = (folder / "console.log").rename(tmp_path / "sent/console.log")
    assert main(["doctor", "--replay", str(alone), "--json"]) == 0
    first, _ = json.loads(capsys.readouterr().out)
    phases = [mark["phase"] for mark in first["marks"]]
    assert phases[0] == "power_on"
    assert phases[-1] == "prompt"
    assert first["changes"] == []
    assert first["alarm"] is None


def test_a_disaster_is_named(tmp_path, capsys):
    text = BOOT + b"root\r\n[   20.000000] Kernel panic - not syncing: it is over\r\n"
    path = tmp_path / "console.log"
    path.write_bytes(HEADER + b"".join(record.line() for record in records(text)))
    assert main(["doctor", "--replay", str(path)]) == 0
    assert "kernel panic: Kernel panic - not syncing" in capsys.readouterr().out


def replayed(tmp_path, capsys, *said):
    """What is made of a boot of texts of the board and (as str) of the lab."""
    path = tmp_path / "console.log"
    at = 10**9
    lines = [ConsoleRecord(at, at, "#", POWER_ON.encode())]
    for text in said:
        at += 10**9
        kind, data = (">", text.encode()) if isinstance(text, str) else ("<", text)
        lines.append(ConsoleRecord(at, at, kind, data))
    path.write_bytes(HEADER + b"".join(record.line() for record in lines))
    assert main(["doctor", "--replay", str(path), "--json"]) == 0
    (boot,) = json.loads(capsys.readouterr().out)
    return boot


def test_the_watch_is_told_what_the_run_awaited(tmp_path, capsys):
    typed = [texts.LOADER, " ", b"=> ", "boot\n", texts.SD]
    assert replayed(tmp_path, capsys, *typed)["alarm"] is None
    missed = replayed(tmp_path, capsys, texts.LOADER, " ", texts.SD)
    assert missed["alarm"]["name"] == "autoboot was not stopped"
    nobody_typed = replayed(tmp_path, capsys, texts.LOADER + texts.SD)
    assert nobody_typed["alarm"] is None


def test_a_second_kernel_and_a_second_spl_are_told(tmp_path, capsys):
    twice = texts.SD.replace(b"our-board login: ", b"") + texts.SD
    found = replayed(tmp_path, capsys, texts.LOADER, " ", b"=> ", "boot\n", twice)
    assert found["alarm"]["name"] == "silent reset"
    spl = texts.LOADER[: texts.LOADER.index(b"Starting ATF")] + b"resetting ...\r\n"
    found = replayed(tmp_path, capsys, spl + texts.LOADER, " ", b"=> ", "boot\n", texts.SD)
    assert found["alarm"] is None
    assert len(found["notes"]) == 1


@pytest.mark.parametrize(
    ("name", "spans", "start"),
    [
        ("consoles/am62x-sk-fast-1", "boot_time power_to_output", "TF-A"),
        ("consoles-2/am625-mcu-falcon-1", "boot_time power_to_output output_to_kernel", "kernel"),
    ],
)
def test_a_real_boot_without_uboot_has_the_times_of_its_marks(name, spans, start):
    """TI's fast boot with a quiet kernel, and a board of a forum whose MCU+ SBL starts Linux."""
    file = seeds.place("real/consoles").parent / f"{name}.txt"
    if not file.is_file():
        pytest.skip(f"shared/real/{name}.txt is not beside the checkout")
    boot = ObservedBoot("booted", "", 1, 1.0, marks(recorded(file)))
    assert Phase.UBOOT_BANNER not in boot.marks
    assert " ".join(reading.metric for reading in boot_readings.readings(boot)) == spans
    condition = boot_readings.condition(boot)
    assert start in condition
    assert "SBL" in condition
