"""The console's record: every byte comes back as it went in; bounds of its times, and where a boot's went."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evmperf.boards.console import record, tree
from evmperf.boards.console import record as console
from evmperf.boards.console.marks import Phase, find
from evmperf.boards.console.record import HEADER, POWER_ON, ConsoleRecord, History, Line
from evmperf.model import concealing
from evmperf.model.errors import LabError, RefusedOutput

records = st.builds(
    ConsoleRecord,
    mono_ns=st.integers(0, 1 << 62),
    wall_ns=st.integers(0, 4_000_000_000_000_000_000),
    kind=st.sampled_from("<>#"),
    data=st.binary(max_size=300),
    bound_ns=st.integers(0, 1 << 62),
)


def read(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("console") / "console.log"
    path.write_bytes(content)
    return list(console.read(path))


@given(st.lists(records, max_size=5))
def test_records_come_back_as_they_were(tmp_path_factory, kept):
    back = read(tmp_path_factory, HEADER + b"".join(r.line() for r in kept))
    assert [(r.mono_ns, r.kind, r.data, r.bound_ns) for r in back] == [
        (r.mono_ns, r.kind, r.data, r.bound_ns) for r in kept
    ]
    # the wall clock is written in microseconds
    assert all(abs(a.wall_ns - b.wall_ns) <= 1000 for a, b in zip(back, kept, strict=True))


@given(records, records, st.data())
def test_a_last_line_cut_anywhere_loses_only_itself(tmp_path_factory, first, last, data):
    line = last.line()
    kept = line[: data.draw(st.integers(0, len(line) - 1))]
    back = read(tmp_path_factory, HEADER + first.line() + kept)
    assert [r.data for r in back] == [first.data]


def test_the_wall_clock_is_utc():
    record = ConsoleRecord(1_000_000_005, 1_700_000_000_123_456_000, "<", b"x", 1_500_000)
    moment = datetime.fromtimestamp(1_700_000_000, UTC)
    wall = f"{moment:%Y-%m-%dT%H:%M:%S}.123456Z"
    assert record.line() == f"1.000000005 {wall} < 0.001500000 b'x'\n".encode()


def test_a_line_cannot_carry_more_than_its_baud_allows():
    line = Line(115200)
    second = 10**9
    assert line.late_ns(second, 1) == pytest.approx(86_806, abs=1)
    # 5760 bytes take half a second: in one piece, or in five pieces within a millisecond
    assert line.late_ns(2 * second, 5760) == pytest.approx(second / 2)
    fresh = Line(115200)
    for n in range(4):
        fresh.late_ns(second + n, 1152)
    assert fresh.late_ns(second + 4, 1152) == pytest.approx(second / 2, abs=10)
    assert fresh.late_ns(2 * second, 1) == pytest.approx(86_806, abs=1)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 100)), min_size=1))
def test_what_comes_at_the_lines_rate_is_never_called_late(pieces):
    line, now, longest = Line(115200), 0, max(length for _, length in pieces)
    for pause, length in pieces:
        now += pause + round(length * 10**10 / 115200) + 1
        assert line.late_ns(now, length) <= longest * 10**10 / 115200 + 1


def test_a_power_on_starts_the_memory_anew_but_not_the_file(tmp_path):
    history = History()
    history.open(tmp_path / "console.log")
    history.feed(b"old", 1)
    history.event(POWER_ON, 2)
    history.feed(b"new", 3)
    history.close()
    assert [r.data for r in history.records()] == [POWER_ON.encode(), b"new"]
    assert [r.data for r in console.read(tmp_path / "console.log")] == [b"old", POWER_ON.encode(), b"new"]


@given(st.binary(max_size=200), st.integers(1, 10))
def test_a_tail_is_printable_lines_of_what_the_board_said(data, lines):
    history = History()
    history.feed(b"typed by us", 1, kind=">")
    history.feed(data, 2)
    tail = history.tail(lines)
    assert len(tail) <= lines
    assert all(line.isprintable() for line in tail)
    assert "typed by us" not in "".join(tail) or b"typed by us" in data


def test_a_record_that_cannot_be_written_is_a_lab_error_with_the_remedy():
    history = History()
    history._file = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115
    history.feed(b"x", 1)
    with pytest.raises(LabError, match=r"No space left on device.*--results"):
        history.check()
    history.check()  # said once
    assert [r.data for r in history.records()] == [b"x"]
    history.close()


def test_output_that_may_begin_a_secret_waits_within_bounds(tmp_path, monkeypatch):
    """A board may print the first character of its password for ever."""
    monkeypatch.setattr(concealing, "_learned", {"hunter2-of-the-lab"})
    history, file = History(), tmp_path / "console.log"
    history.open(file)
    for number in range(1, 101):
        history.feed(b"h" * 1000, number)
    assert sum(len(record.data) for record in console.read(file)) > 90_000
    history.feed(b" hunter2-of", 101)
    history.feed(b"-the-lab\n", 102)
    history.close()
    text = file.read_text()
    assert "hunter2" not in text
    assert b"".join(record.data for record in console.read(file)).endswith(b" " + b"*" * 18 + b"\n")


MS = 1_000_000
BAUD = 115200


def passed_on(pieces, held, cuts=(8, 64, 256)):
    """The records of pieces (ns, bytes) that a server passes on at once but in `held` (begin, end),
    and when each byte was said. The stamping process states 1.5 ms, as it does on a quiet host.
    """
    begin, until = held
    records, said, line = [], [], Line(BAUD)
    waiting = [(at, size) for at, size in pieces if begin <= at < until]

    def add(at, times):
        bound = max(1_500_000, line.late_ns(at, len(times)))
        records.append(ConsoleRecord(at, at, "<", b"x" * len(times), bound))
        said.extend(times)

    for at, size in [piece for piece in pieces if piece[0] < begin]:
        add(at, [at] * size)
    bytes_waiting = [at for at, size in waiting for _ in range(size)]
    at = until
    for cut in (*cuts, len(bytes_waiting)):
        if bytes_waiting:
            add(at, bytes_waiting[:cut])
            del bytes_waiting[:cut]
            at += 600_000
    for later, size in [piece for piece in pieces if piece[0] >= until]:
        add(max(later, at), [later] * size)
    return records, said


def outside(records, said):
    times = iter(said)
    return sum(next(times) < r.mono_ns - r.bound_ns for r in records for _ in r.data)


@pytest.mark.parametrize("cuts", [(8, 64, 256), (100_000,)])
@pytest.mark.parametrize(("held_ms", "size"), [(5, 6), (12, 8), (43, 11), (120, 8)])
def test_what_was_held_up_is_in_the_bounds_of_all_its_pieces(held_ms, size, cuts):
    pieces = [(n * MS, size) for n in range(1000, 3000)]
    records, said = passed_on(pieces, (1200 * MS, (1200 + held_ms) * MS), cuts)
    assert outside(records, said)  # the first piece looks like any other
    widened = record.widened(records, BAUD)
    assert outside(widened, said) == 0
    assert [r.data for r in widened] == [r.data for r in records]
    # What is far from it keeps its bound, once the line has had time for all that came.
    assert widened[0] == records[0]
    assert widened[-1] == records[-1] or size == 11


@pytest.mark.parametrize("every_ms", [1, 4, 16])
def test_a_line_that_is_used_in_full_in_pieces_is_not_held_up(every_ms):
    chance = random.Random(1)
    line, records, at = Line(BAUD), [], 0
    for _ in range(500):
        at += every_ms * MS
        stamp = at + chance.randrange(200_000)
        size = int(every_ms * 11.5)
        records.append(ConsoleRecord(stamp, stamp, "<", b"x" * size, max(2 * MS, line.late_ns(stamp, size))))
    for before, after in zip(records, record.widened(records, BAUD), strict=True):
        assert after.bound_ns - before.bound_ns < MS


def test_events_and_what_was_typed_stay_as_they_are():
    records = [ConsoleRecord(MS, MS, "#", b"power on"), ConsoleRecord(2 * MS, 0, ">", b"\n")]
    assert record.widened(records, BAUD) == records
    assert record.widened([], BAUD) == []


def test_a_long_record_takes_no_long_time():
    pieces = [(n * MS, 8) for n in range(1000, 41_000)]
    records, said = passed_on(pieces, (5000 * MS, 9000 * MS))
    assert outside(record.widened(records, BAUD), said) == 0


@pytest.mark.parametrize(("wire", "margin_ms"), [("serial", 1), ("raw", 3), ("rfc2217", 4)])
def test_every_wire_has_its_margin(wire, margin_ms):
    records = [ConsoleRecord(MS, MS, "#", b"power on"), ConsoleRecord(2 * MS, 0, "<", b"x", MS)]
    event, heard = record.bounded(records, wire, BAUD)
    assert event == records[0]
    assert heard.bound_ns == MS + margin_ms * MS


PROMPT = r"login: "


def spoken(*said):
    """Records of a console: milliseconds since power-on, and text."""
    board = [ConsoleRecord(ms * MS, ms * MS, "<", text.encode()) for ms, text in said]
    return [ConsoleRecord(0, 0, "#", POWER_ON.encode()), *board]


def grown(*said, units=()):
    found = spoken(*said)
    return tree.grow(found, find(found, PROMPT), units)


LOADER = (
    (10, "U-Boot 2025.01 (Jan 01 2025)\r\n"),
    (400, "DRAM:  2 GiB\r\n"),
    (2000, "Hit any key to stop autoboot: 0\r\n"),
    (2100, "\r\nStarting kernel ...\r\n"),
)
KERNEL = (
    (3000, "[    0.000000] Booting Linux\r\n[    0.500000] printk: console [ttyS2] enabled\r\n"),
    (3100, "[    0.600000] mmc0: new card\r\n"),
    (4200, "[    1.700000] EXT4-fs (mmcblk1p2): mounted filesystem\r\n"),
    (4300, "[    1.800000] Run /sbin/init as init process\r\n"),
    (6000, "Starting services\r\n"),
    (6500, "\r\nboard login: "),
)


def told(parts):
    return [(str(part.phase), part.name, round(part.seconds, 3), part.clock) for part in parts]


def test_the_longest_are_named_by_the_kernels_clock_where_it_is_there():
    found = grown(*LOADER, *KERNEL).longest(Phase.STARTING_KERNEL, Phase.PROMPT)
    assert told(found)[:3] == [
        ("init_started", "after 'Run /sbin/init as init process'", 1.7, "console"),
        ("first_kernel_line", "after 'mmc0: new card'", 1.1, "kernel"),
        ("starting_kernel", "after 'Starting kernel ...'", 0.9, "console"),
    ]
    assert len(found) == 5
    (loader, *_) = grown(*LOADER, *KERNEL).longest(Phase.UBOOT_BANNER, Phase.STARTING_KERNEL)
    assert told([loader]) == [("uboot_banner", "after 'DRAM:  2 GiB'", 1.6, "console")]


def test_initcalls_and_bootstages_and_units_are_named_where_they_are_timed():
    report = (
        (2050, "Timer summary in microseconds (2 records):\r\n       Mark    Elapsed  Stage\r\n"),
        (2060, "          0          0  reset\r\n  1,200,000  1,200,000  eth_common_init\r\n\r\n"),
        (2070, "Accumulated time:\r\n"),
    )
    calls = (
        (3200, "[    0.650000] initcall am65_cpsw_init+0x0/0x20 returned 0 after 312000 usecs\r\n"),
        (3300, "[    0.660000] initcall deferred_probe+0x0/0x20 [mod] returned -19 after 45 usecs\r\n"),
    )
    found = grown(
        *LOADER[:3], *report, LOADER[3], *KERNEL[:2], *calls, *KERNEL[2:], units=[("a.service", 9.5)]
    )
    every = told(found.longest(Phase.UBOOT_BANNER, Phase.PROMPT, 99))
    assert ("first_kernel_line", "initcall am65_cpsw_init", 0.312, "kernel") in every
    assert ("autoboot", "eth_common_init", 1.2, "U-Boot") in every
    assert every[0] == ("init_started", "a.service", 9.5, "systemd, side by side")
    assert not any("initcall" in note or "BOOTSTAGE" in note for note in found.notes)


STAGES = """\
Timer summary in microseconds (5 records):
       Mark    Elapsed  Stage
          0          0  reset
    583,290    583,290  board_init_f
  2,348,898  1,765,608  board_init_r

Accumulated time:
                57,678  dm_f
                69,883  dm_r
"""


@pytest.mark.parametrize("lost", range(2, 9))
def test_a_report_of_stages_with_fewer_records_than_it_states_is_cut(lost):
    lines = STAGES.splitlines(keepends=True)
    assert len(tree.bootstages(STAGES)) == 3
    for damaged in (lines[:lost] + lines[lost + 1 :], lines[:lost]):
        with pytest.raises(RefusedOutput):
            tree.bootstages("".join(damaged))
    with pytest.raises(RefusedOutput):
        tree.bootstages(STAGES.replace("board_init_f\n", "board_init_f[  123.456789] mmc0: error -110\n"))


def test_initcalls_that_the_console_did_not_show_are_in_the_kernels_log():
    log = (
        "[    0.200000] initcall mmc_init+0x0/0x20 returned 0 after 700000 usecs\n"
        "[    1.800000] Run /sbin/init as init process\n"
        "[    2.000000] initcall late_module+0x0/0x20 returned 0 after 900000 usecs\n"
    )
    found = spoken(*LOADER, *KERNEL)
    grew = tree.grow(found, find(found, PROMPT), kernel_log=log)
    calls = [part for part in grew.parts if part.name.startswith("initcall")]
    assert told(calls) == [("first_kernel_line", "initcall mmc_init", 0.7, "kernel")]
    assert not any("initcalls" in note for note in grew.notes)


def test_what_is_missing_is_said():
    quiet = grown(*LOADER, (4000, "\r\nboard login: ")).notes
    assert len(quiet) == 4
    assert quiet[0].startswith("no messages of spl_banner, tf_a, op_tee, a53_spl")
    assert "CONFIG_BOOTSTAGE_REPORT" in quiet[3]


def test_the_clocks_are_held_against_each_other_and_a_late_console_is_said():
    fast = [(3000 + n * 100, f"[{n * 0.11:12.6f}] message {n}\r\n") for n in range(30)]
    notes = grown(*LOADER, *fast, (9000, "\r\nboard login: ")).notes
    assert any("1.1000 s per second" in note for note in notes)
    late = grown(*LOADER, *KERNEL).notes
    assert any(re.search("0.500 s late: 'Booting Linux' .*0.000 s", note) for note in late)
    even = [(3000 + n * 100, f"[{n * 0.1:12.6f}] message {n}\r\n") for n in range(30)]
    assert not any("late" in note for note in grown(*LOADER, *even, (9000, "\r\nboard login: ")).notes)
    at_once = [(3000, text) for _, text in even]  # which tells no rate
    notes = grown(*LOADER, *at_once, (3000, "\r\nboard login: ")).notes
    assert not any("clock runs" in note for note in notes)


def test_a_root_that_is_mounted_after_init_counts_once():
    ram_disk = (
        (3000, "[    0.000000] Booting Linux\r\n[    0.100000] Run /init as init process\r\n"),
        (5000, "[    2.100000] EXT4-fs (vda1): mounted filesystem\r\n"),
        (6000, "\r\nboard login: "),
    )
    found = grown(*LOADER, *ram_disk)
    names = [part.name for part in found.longest(Phase.STARTING_KERNEL, Phase.PROMPT, 99)]
    assert len(names) == len(set(names))
    assert sum(found.phases.values()) == pytest.approx(6.0)


def test_many_lines_of_one_kind_are_one_part():
    said = [(2200 + 100 * n, "Authentication passed\r\n") for n in range(12)]
    loader = ((10, "U-Boot SPL 2025.01 (Jan 01 2025)\r\n"), *said, (4000, "U-Boot 2025.01 (Jan 01 2025)\r\n"))
    found = grown(*loader, (5000, "\r\nStarting kernel ...\r\n"), *[(ms + 3000, text) for ms, text in KERNEL])
    names = [part.name for part in found.longest(Phase.SPL_BANNER, Phase.UBOOT_BANNER)]
    assert "after 'Authentication passed' (12 times)" in names


def test_a_rom_that_looks_for_a_medium_is_silent():
    found = grown(*[(ms + 9000, text) for ms, text in (*LOADER, *KERNEL)])
    (part,) = found.longest(Phase.POWER_ON, Phase.FIRST_OUTPUT)
    assert "the ROM tries media" in part.name
    assert part.seconds == pytest.approx(9.01)


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("[    1.750000] EXT4-fs (mmcblk1p2): recovery complete\r\n", "journal was replayed"),
        ("         Starting Opkg first boot configure...\r\n", "units of a first boot"),
    ],
)
def test_a_boot_that_is_not_like_the_others_says_so(line, note):
    assert note in grown(*LOADER, *KERNEL[:-1], (6100, line), KERNEL[-1]).notes[0]
    assert note not in " ".join(grown(*LOADER, *KERNEL).notes)
