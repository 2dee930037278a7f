"""Whatever is cut from or put into a recording: its own number, or none.

Bytes that change a digit cannot be told from another result by a parser; the archive's checksum
guards against those (see test_shellstep).
"""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evmperf.benchmarks.tools import uboot
from evmperf.model.errors import RefusedOutput
from selftests.support.recordings import good_recordings

FIO = good_recordings("evmperf.benchmarks.tools.fio:throughput")
JSON_ONLY = [r for r in FIO if r.name != "fio/text-around"]
YAVTA = good_recordings("evmperf.benchmarks.tools.yavta:frame_rate")
MPSTAT = good_recordings("evmperf.benchmarks.tools.mpstat:load")
DD = good_recordings("evmperf.benchmarks.tools.dd:throughput")
SF = good_recordings("evmperf.benchmarks.tools.uboot:sf_rate")
STAT = good_recordings("evmperf.benchmarks.tools.mpstat:stat_load")
ALSA = good_recordings("evmperf.benchmarks.tools.alsa:throughput")
# Its last line is one that not every kernel prints.
ALSA_WHOLE = [r for r in ALSA if r.name != "alsa/no-overrun"]
OPENSSL = good_recordings("evmperf.benchmarks.tools.openssl:throughput")
OPENSSL_LOAD = good_recordings("evmperf.benchmarks.tools.openssl:cpu_load")
GLMARK2 = good_recordings("evmperf.benchmarks.tools.glmark2:drawing.score")

lines = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60)
console_lines = st.one_of(
    lines, st.builds("[{:>12.6f}] {}".format, st.floats(0, 1e5, allow_nan=False), lines)
)


def refused_or(value, recording, *texts):
    with contextlib.suppress(RefusedOutput):
        assert recording.parse(*texts) == value


@given(
    st.sampled_from(FIO + MPSTAT + DD + SF + ALSA_WHOLE + OPENSSL + OPENSSL_LOAD + GLMARK2 + YAVTA), st.data()
)
def test_a_cut_output_is_refused_unless_only_its_end_of_line_is_gone(recording, data):
    *others, text = recording.texts
    at = data.draw(st.integers(0, len(text.rstrip()) - 1))
    with pytest.raises(RefusedOutput):
        recording.parse(*others, text[:at])


@given(st.sampled_from(ALSA + OPENSSL + OPENSSL_LOAD + GLMARK2 + YAVTA), console_lines, st.data())
def test_a_line_more_is_refused_or_changes_nothing(recording, line, data):
    *others, text = recording.texts
    lines = text.splitlines()
    lines.insert(data.draw(st.integers(0, len(lines))), line)
    refused_or(pytest.approx(recording.expected), recording, *others, "\n".join(lines) + "\n")


@given(
    st.lists(
        st.tuples(st.integers(1, 1 << 20), st.integers(1, 10**9), st.integers(80, 120)),
        min_size=1,
        unique_by=lambda row: row[0],
    )
)
def test_openssl_counts_blocks_over_the_time_it_was_to_take(rows):
    from evmperf.benchmarks.tools import openssl

    text = "".join(f"+DT:SHA1:1:{s}\n+R:{b}:SHA1:{t / 100:.6f}\n" for s, b, t in rows)
    rates = ":".join(f"{s * b / (t / 100):.2f}" for s, b, t in rows)
    text += f"+H:{':'.join(str(s) for s, _, _ in rows)}\n+F:25:SHA1:{rates}\n"
    for size, blocks, hundredths in rows:
        took = 1.0 if abs(hundredths - 100) <= 1 else hundredths / 100
        expected = pytest.approx(blocks * size / took / 1000)
        assert openssl.throughput(text, size, 1) == expected


@given(st.sampled_from(JSON_ONLY + MPSTAT), st.data())
def test_a_line_inside_json_is_refused(recording, data):
    text = recording.texts[-1]
    at = data.draw(st.integers(text.index("{") + 1, len(text.rstrip()) - 1))
    line = data.draw(console_lines.filter(lambda line: line.strip(" ,")))
    refused_or(recording.expected, recording, f"{text[:at]}\n{line}\n{text[at:]}")
    if not line.strip().replace(",", "").isdigit():
        with pytest.raises(RefusedOutput):
            recording.parse(f"{text[:at]}\n[{line}\n{text[at:]}")


@given(st.sampled_from(FIO), lines.filter(lambda line: "{" not in line))
def test_fio_notes_before_the_object_change_nothing(recording, line):
    assert recording.parse(f"{line}\n{recording.texts[0]}") == pytest.approx(recording.expected)


@given(st.sampled_from(JSON_ONLY + MPSTAT), console_lines.filter(str.strip))
def test_anything_after_the_json_is_refused(recording, line):
    with pytest.raises(RefusedOutput):
        recording.parse(f"{recording.texts[0]}{line}\n")


@given(st.sampled_from(DD), console_lines, st.integers(0, 3))
def test_a_line_more_is_refused_by_dd(recording, line, at):
    text = recording.texts[0].splitlines()
    text.insert(at, line)
    with pytest.raises(RefusedOutput):
        recording.parse("\n".join(text) + "\n")


@given(st.sampled_from(DD), st.integers(1, 1 << 40))
def test_dd_of_other_bytes_than_asked_for_is_refused(recording, expected):
    from evmperf.benchmarks.tools import dd

    if expected != recording.arguments[0]:
        with pytest.raises(RefusedOutput, match="copied"):
            dd.throughput(recording.texts[0], expected)


@given(st.sampled_from(SF), console_lines.filter(str.strip), st.data())
def test_a_line_inside_sfs_output_changes_no_figure(recording, line, data):
    text = recording.texts[0]
    at = data.draw(st.integers(0, len(text)))
    refused_or(recording.expected, recording, f"{text[:at]}\n{line}\n{text[at:]}")


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
        ({"error": 5}, "error 5"),
        ({"error": None}, "error None"),
        ({"write.bw_bytes": 0}, "moved no data"),
        ({"write.io_bytes": 0}, "moved no data"),
        ({"write.bw_bytes": "208331316"}, "not whole numbers"),
        ({"write.bw_bytes": 208331316.5}, "not whole numbers"),
        ({"write.bw_bytes": True}, "not whole numbers"),
        ({"write": None}, "no write side"),
        ({"read.io_bytes": 4096}, "asked to write but did read"),
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
