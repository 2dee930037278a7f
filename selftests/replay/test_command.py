"""`evmperf doctor --replay`: a console read again."""

import json
from pathlib import Path

import pytest

from evmperf.benchmarks.families import boot as boot_readings
from evmperf.boards.console.marks import ObservedBoot, Phase, find
from evmperf.boards.console.record import HEADER, POWER_ON, ConsoleRecord
from evmperf.commands.cli.main import main
from evmperf.measure.runs.spool import CONSOLE_LOG, Spool
from evmperf.model.run import Run
from selftests.replay import texts
from selftests.support import seeds
from selftests.support.consoles import marks, recorded
from selftests.support.texts import LOGIN

ROOT = Path(__file__).resolve().parents[2]
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


LINE = b"1.000000000 2026-02-02T11:00:00.000000Z < 0.000000000 "


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "no run"),
        (HEADER, "has no power-on"),
        (b"", "is not a console record"),
        (b"evmperf-console/1\n", "is not a console record"),
        (texts.LOADER, "evmperf doctor BOARD --console FILE"),
        (b"\x00" * 4096, "is not a console record"),
        (HEADER + b"no record\n", "line 2 is not a console record"),
        (HEADER + LINE + b"'text'\n", "line 2 is not a console record"),
        (HEADER + LINE + b"(" * 5000 + b"\n", "line 2 is not a console record"),
        (HEADER + LINE + b"b'\xff'\n", "line 2 is not a console record"),
        (HEADER + LINE.replace(b"2026-02-02", b"yesterday!") + b"b''\n", "line 2 is not a console record"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path, capsys, content, reason):
    path = tmp_path / "console.log"
    if content is not None:
        path.write_bytes(content)
    assert main(["doctor", "--replay", str(path)]) == 4
    assert reason in capsys.readouterr().err


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
