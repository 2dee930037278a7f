"""Outputs of tools, real and recorded: each gives its number or is refused, whole or damaged."""

import contextlib
import functools
import itertools
import json
import operator
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evmperf.benchmarks.tables import audio, openssl
from evmperf.benchmarks.tools import iperf3, perf, uboot
from evmperf.model.errors import RefusedOutput
from selftests.instruments import mutations
from selftests.support import real_tools, seeds
from selftests.support.recordings import DATA, OTHERS, all_recordings, approximately, good_recordings

RECORDINGS = all_recordings()
REAL = real_tools.cases()


@pytest.mark.parametrize("recording", [*RECORDINGS, *REAL], ids=lambda r: r.name)
def test_a_recording_gives_its_number_or_is_refused_with_the_reason(recording):
    if recording.expected is not None:
        assert recording.parse() == approximately(recording.expected)
        return
    with pytest.raises(RefusedOutput, match=recording.refused) as refusal:
        recording.parse()
    assert refusal.value.raw in ("".join(recording.texts), *recording.texts)


def test_every_tool_with_a_parser_has_a_recording():
    tools = {r.parser.split(":")[0].rsplit(".", 1)[1] for r in RECORDINGS}
    folder = DATA.parents[1] / "evmperf" / "benchmarks"
    reading = {path.stem for path in folder.glob("*/*.py") if "tools._checks import" in path.read_text()}
    # What a desk reads of the last boot, selftests/desk measures.
    assert reading - {"desk"} <= tools


def test_every_recorded_text_is_used():
    used = {text for recording in RECORDINGS for text in recording.texts}
    outputs = [path for path in DATA.glob("*/*.txt") if path.parent.name not in OTHERS]
    assert [path.name for path in outputs if path.read_text() not in used] == []


@seeds.needs("real/tools")
def test_a_real_account_of_a_stream_with_lost_data_is_refused():
    status = (real_tools.folder() / "alsa-1.txt").read_text().replace("  # (new row)", "")
    said = "Playing raw data '/dev/zero' : Signed 16 bit Little Endian, Rate 48000 Hz, Stereo\n"
    params = (
        "access: RW_INTERLEAVED\nformat: S16_LE\nsubformat: STD\nchannels: 2\n"
        "rate: 48000 (48000/1)\nperiod_size: 480\nbuffer_size: 1920\n"
    )
    running = f"state: RUNNING\n{status}"
    with pytest.raises(RefusedOutput, match="3 XRUNs"):
        audio.throughput(said, f"{params}\n{running}\n{running}", 48000, 480)
    with pytest.raises(RefusedOutput, match="state was None"):
        audio.throughput(said, f"{params}\n{status}\n{status}", 48000, 480)


@seeds.needs("real/tools")
def test_every_real_output_is_read():
    there = {path.stem for path in real_tools.folder().glob("*.txt")}
    read = {name for case in REAL for name in real_tools.files_of(case)}
    assert there - read == set(real_tools.NOT_USED)


_PLACES = 12
"""Of each text, for each kind of damage."""


def test_no_damage_makes_another_number(capsys):
    """Bytes that change a digit cannot be told from another result by a parser; the archive's checksum
    guards against those (see test_shellstep).
    """
    status = mutations.main(["--places", str(_PLACES)])
    printed = capsys.readouterr().out
    assert status == 0, printed
    total = next(line.split() for line in printed.splitlines() if line.startswith("all "))
    calls, own, refused, wrong, once = map(int, total[1:])
    assert calls == own + refused + wrong + once
    assert calls > 100 * len({r.parser for r in all_recordings()})


def test_a_wrong_number_is_counted_and_ends_the_program_with_1(monkeypatch, capsys):
    (recording,) = [r for r in all_recordings() if r.name == "lmbench/memory-1m"]
    monkeypatch.setattr(mutations, "subjects", lambda: [recording])
    monkeypatch.setattr(mutations, "ONCE", {})
    assert mutations.main([]) == 1
    assert "lmbench/memory-1m: character lost at" in capsys.readouterr().out


CHANGED = yaml.safe_load(Path(__file__).with_name("changed.yaml").read_text())
SF = good_recordings("evmperf.benchmarks.tools.uboot:sf_rate")
STAT = good_recordings("evmperf.benchmarks.tools.mpstat:stat_load")


@given(
    st.lists(
        st.tuples(st.integers(1, 1 << 20), st.integers(1, 10**9), st.integers(80, 120)),
        min_size=1,
        unique_by=lambda row: row[0],
    )
)
def test_openssl_counts_blocks_over_the_time_it_was_to_take(rows):
    text = "".join(f"+DT:SHA1:1:{s}\n+R:{b}:SHA1:{t / 100:.6f}\n" for s, b, t in rows)
    rates = ":".join(f"{s * b / (t / 100):.2f}" for s, b, t in rows)
    text += f"+H:{':'.join(str(s) for s, _, _ in rows)}\n+F:25:SHA1:{rates}\n"
    for size, blocks, hundredths in rows:
        took = 1.0 if abs(hundredths - 100) <= 1 else hundredths / 100
        expected = pytest.approx(blocks * size / took / 1000)
        assert openssl.throughput(text, size, 1) == expected


_RATES = ("evmperf.benchmarks.tools.uboot:file_rate", "evmperf.benchmarks.tools.uboot:disk_rate")
UBOOT = [one for rate in _RATES for one in good_recordings(rate) if "three" in one.name]


def taken_wrongly(recording, text):
    """The texts with one character changed that give another number, by more than 1 %."""
    wrong = []
    for at, replacement in itertools.product(range(len(text)), "0159. x"):
        damaged = f"{text[:at]}{replacement}{text[at + 1 :]}"
        with contextlib.suppress(RefusedOutput):
            if recording.parse(damaged) != pytest.approx(recording.expected, rel=0.01):
                wrong.append(damaged)
    return wrong


@pytest.mark.parametrize("recording", UBOOT, ids=str)
def test_no_character_of_u_boots_three_times_makes_another_number(recording):
    (text,) = recording.texts
    assert taken_wrongly(recording, text) == []
    one_line = re.sub(r"\n\ntime: \S+ seconds", "", text, count=2)
    assert recording.parse(one_line) == pytest.approx(recording.expected, rel=0.005)  # as of earlier versions
    assert taken_wrongly(recording, one_line)


def test_two_times_of_u_boot_are_too_few():
    (text,) = UBOOT[0].texts
    for time in re.finditer(r"time: \S+ seconds\n?", text):
        with pytest.raises(RefusedOutput, match="2 time lines"):
            UBOOT[0].parse(text[: time.start()] + text[time.end() :])


@given(st.sampled_from(SF), st.integers(0, 1 << 32), st.integers(0, 1 << 32))
def test_sf_of_another_region_is_refused(recording, offset, size):
    operation, *region, unit = recording.arguments
    if [offset, size] != region:
        with pytest.raises(RefusedOutput, match="was to move"):
            uboot.sf_rate(recording.texts[0], operation, offset, size, unit)


counters = st.lists(st.integers(0, 10**9), min_size=10, max_size=10)
ticks = st.integers(0, 10**6)


@given(counters, st.lists(ticks, min_size=6, max_size=6), ticks, ticks, st.tuples(ticks, ticks))
def test_stat_load_is_what_was_busy_of_all_ticks(before, busy, idle, iowait, guests):
    # user nice system | idle iowait | irq softirq steal | guest guest_nice, which are counted in
    # user and nice already
    spent = [*busy[:3], idle, iowait, *busy[3:], *guests]
    after = [a + b for a, b in zip(before, spent, strict=True)]
    first, second = (
        "".join(f"{cpu} {' '.join(map(str, ticks))}\n" for cpu in ("cpu ", "cpu0"))
        for ticks in (before, after)
    )
    worked, waited = sum(busy), idle + iowait
    if not worked + waited:
        with pytest.raises(RefusedOutput):
            STAT[0].parse(first, second)
        return
    load = STAT[0].parse(first, second)
    assert load * (worked + waited) == pytest.approx(100 * worked, abs=1e-6)


@pytest.mark.parametrize(
    ("name", "place", "values", "reason"),
    [(name, *row) for name, rows in CHANGED.items() for row in ([*row, None][:3] for row in rows)],
)
def test_json_that_says_something_else_is_refused(name, place, values, reason):
    recording = next(r for r in all_recordings() if r.name == name)
    document = json.loads(recording.texts[0])
    lists = "thread" not in place  # whose threads have numbers for names
    *way, last = (int(key) if lists and key.isdigit() else key for key in place.split("."))
    for value in values:
        functools.reduce(operator.getitem, way, document)[last] = value
        with pytest.raises(RefusedOutput, match=reason):
            recording.parse(json.dumps(document))


def test_json_with_an_endless_number_is_refused():
    (recording,) = good_recordings("evmperf.benchmarks.families.disk:fio_throughput")[:1]
    with pytest.raises(RefusedOutput):
        recording.parse(recording.texts[0].replace('"error" : 0', '"error" : ' + "9" * 5000))


NETPERF = good_recordings("evmperf.benchmarks.tools.netperf:outcome")
UDP = good_recordings("evmperf.benchmarks.tools.iperf3:datagrams")
FORWARD = next(recording for recording in UDP if recording.name == "iperf3/udp-forward")


@given(st.sampled_from(NETPERF), st.floats(0.01, 100))
def test_a_throughput_that_is_not_that_of_the_bytes_is_refused(recording, factor):
    said = recording.expected["throughput"]
    text = recording.texts[0].replace(f"THROUGHPUT={said:.2f}", f"THROUGHPUT={said * factor:.2f}")
    if not 0.97 < factor < 1.03:
        with pytest.raises(RefusedOutput, match="not its throughput"):
            recording.parse(text)


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from([18, 1472]))
def test_lost_datagrams_are_gaps_and_what_is_missing_at_the_end(arrived, gaps, tail, size):
    document = json.loads(FORWARD.texts[0])
    document["start"]["test_start"] |= {"blksize": size, "duration": 1}
    end = document["end"]
    sent = arrived + gaps + tail
    for side, packets, moved in (("sum_sent", sent, sent), ("sum_received", arrived + gaps, arrived)):
        bits = {"bytes": moved * size, "seconds": 1.0, "bits_per_second": 8.0 * moved * size}
        end[side] |= {"packets": packets, **bits}
    end["sum_received"]["lost_packets"] = gaps
    moved = iperf3.datagrams(json.dumps(document), 1, size)
    # A quarter of the second may be missing at the end: the receiver stops first.
    expected = gaps + (tail if tail > 0.25 * (arrived + gaps + tail) else 0)
    assert (moved.sent, moved.lost) == (arrived + gaps + tail, expected)


STACKS = """\
16	swapper;__secondary_switched;secondary_start_kernel;cpu_startup_entry;do_idle;default_idle_call
3	swapper;start_kernel;do_idle;default_idle_call;el1h_64_irq;handle_softirqs
6	dd;[dd];__libc_start_main;el0_svc;__arm64_sys_read;vfs_read;__pi_clear_page
2	perf;[perf];__poll;el0_svc;eventfd_poll
3	sh;[dash]
"""


def test_a_profile_has_symbols_by_their_share_of_the_busy_time():
    profile = perf.parse(STACKS, "# started\n\n<not supported>,,cycles,0,100.00,,\n")
    assert profile.symbols == {"handle_softirqs": 3, "__pi_clear_page": 6, "[dash]": 3}
    assert (profile.idle, profile.share("__pi_clear_page"), profile.per_cycle) == (16, 0.5, 0.0)
    counted = perf.parse(STACKS, "4000,,cycles,1,100.00,,\n6000,,instructions,1,100.00,1.50,insn per cycle\n")
    assert counted.per_cycle == 1.5
    assert profile.uncertainty == pytest.approx(1.96 * (0.5 * 0.5 / 12) ** 0.5)


def test_flame_graph_tools_get_the_count_last():
    assert perf.flames(STACKS).splitlines()[4] == "sh;[dash] 3"


@pytest.mark.parametrize("line", ["no stack", "x\tdd;read", "\tdd", "12\t", f"{10**12}\tdd"])
def test_a_line_of_another_form_is_refused(line):
    with pytest.raises(RefusedOutput):
        perf.parse(f"{STACKS}{line}\n")
