"""The system benchmarks' parsers: whatever is cut or put in, their own number or none."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evmperf.benchmarks.tools import cyclictest, glmark2
from evmperf.model.errors import RefusedOutput
from selftests.support.recordings import DATA, all_recordings
from selftests.tools.test_parsers import console_lines

TOOLS = (
    "lmbench",
    "standin",
    "cyclictest",
    "dhrystone",
    "whetstone",
    "linpack",
    "nbench",
    "stream",
    "coremark_pro",
    "mith",
)
GOOD = [
    r
    for r in all_recordings()
    if r.name.split("/")[0] in TOOLS and not (r.refused or r.edited or len(r.texts) > 1)
]
STRICT = [
    r
    for r in GOOD
    # What stands before the line of a size is no figure: compilers' and shells' words.
    if r.name.split("/")[0] in ("lmbench", "standin") and not r.parser.endswith("value_of_size")
]


def refused_or(value, recording, text):
    with contextlib.suppress(RefusedOutput):
        assert recording.parse(text) == pytest.approx(value)


@given(st.sampled_from(GOOD), st.data())
def test_a_cut_output_gives_its_own_number_or_none(recording, data):
    text = recording.texts[-1]
    refused_or(recording.expected, recording, text[: data.draw(st.integers(0, len(text) - 1))])


@given(st.sampled_from(STRICT), st.data())
def test_a_line_more_is_refused(recording, data):
    lines = recording.texts[-1].splitlines()
    lines.insert(data.draw(st.integers(0, len(lines))), data.draw(console_lines.filter(str.strip)))
    with pytest.raises(RefusedOutput):
        recording.parse("\n".join(lines) + "\n")


@given(st.sampled_from(GOOD), st.data())
def test_a_line_inside_gives_its_own_number_or_none(recording, data):
    text = recording.texts[-1]
    at = data.draw(st.integers(0, len(text)))
    refused_or(recording.expected, recording, f"{text[:at]}\n{data.draw(console_lines)}\n{text[at:]}")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("min", None),
        ("min", "18"),
        ("min", -1),
        ("min", 1e9),
        ("avg", 1.0),
        ("max", 20),
        ("cpu", 1),
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
    ("name", "scenes", "said"),
    [
        ("bounded", "", "bounded by the display's refresh"),
        ("all-scenes", "", ""),
        ("gpu", "-b build:duration=2 -b texture:duration=2", "surface 800x600 windowed"),
        ("no-terrain", "", "without terrain"),
    ],
)
def test_what_bounds_a_score_is_part_of_it(name, scenes, said):
    text = (DATA / "glmark2" / f"{name}.txt").read_text()
    assert glmark2.drawing(text, scenes).variant == said
