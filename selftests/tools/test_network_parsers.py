"""Outputs of network tools, damaged: their own numbers, or none."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evmperf.benchmarks.tools import iperf3
from evmperf.model.errors import RefusedOutput
from selftests.support.recordings import good_recordings

NETPERF = good_recordings("evmperf.benchmarks.tools.netperf:outcome")
UDP = good_recordings("evmperf.benchmarks.tools.iperf3:datagrams")
FORWARD = next(recording for recording in UDP if recording.name == "iperf3/udp-forward")
TCP = good_recordings("evmperf.benchmarks.tools.iperf3:bidirectional")
XFRM = good_recordings("evmperf.benchmarks.tools.xfrm:carried")

lines = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60)
console_lines = st.one_of(
    lines, st.builds("[{:>12.6f}] {}".format, st.floats(0, 1e5, allow_nan=False), lines)
)


@given(st.sampled_from(NETPERF + UDP + TCP), st.data())
def test_a_cut_output_is_refused(recording, data):
    text = recording.texts[0]
    with pytest.raises(RefusedOutput):
        recording.parse(text[: data.draw(st.integers(0, len(text.rstrip()) - 1))])


@given(st.sampled_from(XFRM), st.data())
def test_a_cut_list_of_states_gives_its_own_counters_or_none(recording, data):
    text = recording.texts[0]
    with contextlib.suppress(RefusedOutput):
        assert recording.parse(text[: data.draw(st.integers(0, len(text)))]) == recording.expected


@given(st.sampled_from(NETPERF), console_lines, st.data())
def test_a_line_more_is_refused_by_netperf(recording, line, data):
    text = recording.texts[0].splitlines()
    text.insert(data.draw(st.integers(0, len(text))), line)
    with pytest.raises(RefusedOutput):
        recording.parse("\n".join(text) + "\n")


@given(st.sampled_from(NETPERF), st.floats(0.01, 100))
def test_a_throughput_that_is_not_that_of_the_bytes_is_refused(recording, factor):
    said = recording.expected["throughput"]
    text = recording.texts[0].replace(f"THROUGHPUT={said:.2f}", f"THROUGHPUT={said * factor:.2f}")
    if not 0.97 < factor < 1.03:
        with pytest.raises(RefusedOutput, match="not its throughput"):
            recording.parse(text)


@given(st.sampled_from(NETPERF + XFRM), console_lines, st.data())
def test_text_in_the_middle_gives_the_same_or_nothing(recording, line, data):
    text = recording.texts[0]
    at = data.draw(st.integers(0, len(text)))
    with contextlib.suppress(RefusedOutput):
        assert recording.parse(f"{text[:at]}\n{line}\n{text[at:]}") == recording.expected


@given(st.sampled_from(UDP + TCP), console_lines.filter(str.strip))
def test_anything_after_the_json_is_refused(recording, line):
    with pytest.raises(RefusedOutput):
        recording.parse(f"{recording.texts[0]}{line}\n")


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
