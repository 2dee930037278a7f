"""What outputs say must go together: numbers that cannot be, that belong to another call, or that contradict
each other are refused. Damaged text is test_mutations.py's.
"""

import contextlib
import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evmperf.benchmarks.tables import cyclictest_stress as cyclictest
from evmperf.benchmarks.tables import openssl
from evmperf.benchmarks.tools import dd, iperf3, uboot
from evmperf.model.errors import RefusedOutput
from selftests.support.recordings import DATA, good_recordings

FIO = good_recordings("evmperf.benchmarks.families.disk:fio_throughput")
MPSTAT = good_recordings("evmperf.benchmarks.tools.mpstat:load")
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


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_two_times_of_u_boot_are_too_few(lost):
    (text,) = UBOOT[0].texts
    times = [match.span() for match in re.finditer(r"time: \S+ seconds\n?", text)]
    with pytest.raises(RefusedOutput, match="2 time lines"):
        UBOOT[0].parse(text[: times[lost][0]] + text[times[lost][1] :])


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
    ("changes", "reason"),
    [
        ({"error": None}, "error None"),
        ({"write.bw_bytes": 0}, "moved no data"),
        ({"write.io_bytes": 0}, "moved no data"),
        ({"write.bw_bytes": "208331316"}, "not whole numbers"),
        ({"write.bw_bytes": 208331316.5}, "not whole numbers"),
        ({"write.bw_bytes": True}, "not whole numbers"),
        ({"write": None}, "no write side"),
    ],
)
def test_fio_json_that_says_something_else_is_refused(changes, reason):
    recording = next(r for r in FIO if r.name == "fio/write-4k-directory")
    document = json.loads(recording.texts[0])
    for path, value in changes.items():
        *way, last = path.split(".")
        place = document["jobs"][0]
        for key in way:
            place = place[key]
        place[last] = value
    with pytest.raises(RefusedOutput, match=reason):
        recording.parse(json.dumps(document))


@pytest.mark.parametrize("jobs", [[], None, [{}, {}], ["x"]])
def test_fio_json_without_exactly_one_job_is_refused(jobs):
    with pytest.raises(RefusedOutput, match="exactly one job"):
        FIO[0].parse(json.dumps({"jobs": jobs}))


@pytest.mark.parametrize("value", ["64.50", None, 200.0, -200.0, float("nan"), [1]])
def test_mpstat_idle_that_cannot_be_is_refused(value):
    recording = next(r for r in MPSTAT if r.name == "mpstat/one-interval")
    document = json.loads(recording.texts[0])
    document["sysstat"]["hosts"][0]["statistics"][0]["cpu-load"][0]["idle"] = value
    with pytest.raises(RefusedOutput):
        recording.parse(json.dumps(document))


def test_json_with_an_endless_number_is_refused():
    text = FIO[0].texts[0].replace('"error" : 0', '"error" : ' + "9" * 5000)
    with pytest.raises(RefusedOutput):
        FIO[0].parse(text)


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


@pytest.mark.parametrize("value", [None, "12", -1, float("nan"), float("inf"), True, [1]])
@pytest.mark.parametrize("key", ["packets", "lost_packets", "bytes", "seconds", "bits_per_second"])
def test_a_udp_number_that_cannot_be_is_refused(key, value):
    recording = next(r for r in UDP if r.name == "iperf3/udp-reverse-lossy")
    document = json.loads(recording.texts[0])
    document["end"]["sum_received"][key] = value
    with pytest.raises(RefusedOutput):
        recording.parse(json.dumps(document))


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from([18, 1472]))
def test_lost_datagrams_are_gaps_and_what_is_missing_at_the_end(arrived, gaps, tail, size):
    document = json.loads(FORWARD.texts[0])
    document["start"]["test_start"] |= {"blksize": size, "duration": 1}
    end = document["end"]
    sent = arrived + gaps + tail
    end["sum_sent"] |= {
        "packets": sent,
        "bytes": sent * size,
        "seconds": 1.0,
        "bits_per_second": 8.0 * sent * size,
    }
    end["sum_received"] |= {
        "packets": arrived + gaps,
        "lost_packets": gaps,
        "bytes": arrived * size,
        "seconds": 1.0,
        "bits_per_second": 8.0 * arrived * size,
    }
    moved = iperf3.datagrams(json.dumps(document), 1, size)
    # A quarter of the second may be missing at the end: the receiver stops first.
    expected = gaps + (tail if tail > 0.25 * (arrived + gaps + tail) else 0)
    assert (moved.sent, moved.lost) == (arrived + gaps + tail, expected)


def test_datagrams_that_do_not_add_up_are_refused():
    document = json.loads(FORWARD.texts[0])
    document["end"]["sum_received"]["bytes"] += 1
    with pytest.raises(RefusedOutput, match="bytes are not"):
        FORWARD.parse(json.dumps(document))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("min", None),
        ("min", "18"),
        ("min", -1),
        ("min", 1e9),
        ("max", 20),
        ("cycles", 0),
        ("cycles", 100),
        ("histogram", {}),
        ("histogram", {"x": 1}),
        ("histogram", {"20": -1}),
        ("histogram", {"1": 5}),
    ],
)
def test_latencies_that_do_not_go_together_are_refused(key, value):
    document = json.loads((DATA / "cyclictest" / "histogram.txt").read_text())
    document["thread"]["0"][key] = value
    with pytest.raises(RefusedOutput):
        cyclictest.latencies(json.dumps(document), "avg")


@pytest.mark.parametrize(
    "change", [{"return_code": 1}, {"num_threads": 1}, {"num_threads": 0}, {"thread": {}}, {"thread": None}]
)
def test_a_run_of_cyclictest_that_did_not_end_well_is_refused(change):
    document = json.loads((DATA / "cyclictest" / "histogram.txt").read_text()) | change
    with pytest.raises(RefusedOutput):
        cyclictest.latencies(json.dumps(document), "avg")


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1+0 records in\n1+0 records out\n1048576 bytes (1.0 MB) copied, 0.000135278 s, 11 GB/s\n", 7.751e9),
        (
            "\r99614720 bytes (100 MB, 95 MiB) copied, 1 s, 99 MB/s\n4+0 records in\n4+0 records out\n"
            "1048576 bytes (210 MB, 200 MiB) copied, 2.1 s, 499 kB/s\n",
            499321,
        ),
        ("1+0 records in\n1+0 records out\n1048576 bytes (1.0 MB) copied, 0.0101 s, 120 MB/s\n", None),
        ("1+0 records in\n1+0 records out\n1048576 bytes (1.0 MB) copied, 0.000135 s, 5.0 GB/s\n", None),
    ],
)
def test_dd_of_uutils_looks_at_the_clock_for_its_rate_a_little_earlier(text, rate):
    if rate is None:
        with pytest.raises(RefusedOutput, match="rate does not match"):
            dd.throughput(text, 1048576, 1)
    else:
        assert dd.throughput(text, 1048576, 1) == pytest.approx(rate, rel=0.001)
