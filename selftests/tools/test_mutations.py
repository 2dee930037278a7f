"""Damaged outputs give their own number or none; `python -m selftests.instruments.mutations` has all."""

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from evmperf.model.errors import RefusedOutput
from selftests.instruments import mutations
from selftests.support.recordings import all_recordings, approximately

_PLACES = 12
"""Of each text, for each kind of damage."""
WHOLE = [r for r in all_recordings() if r.expected is not None and not r.edited]
words = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60)
stamps = st.builds("[{:>12.6f}] {}".format, st.floats(0, 1e5, allow_nan=False), words)


@settings(max_examples=3000)
@given(st.sampled_from(WHOLE), st.sampled_from(["cut", "a line more", "a line inside"]), st.data())
def test_a_cut_and_a_line_of_others_make_no_other_number(recording, damage, data):
    """Bytes that change a digit cannot be told from another result by a parser; the archive's checksum
    guards against those (see test_shellstep).
    """
    *others, text = recording.texts
    lines = text.splitlines()
    at = data.draw(st.integers(0, len(lines) if damage == "a line more" else len(text) - 1))
    more = "" if damage == "cut" else data.draw(st.one_of(words, stamps, st.integers(0, 999).map(str)))
    damaged = {
        "cut": text[:at],
        "a line more": "\n".join([*lines[:at], more, *lines[at:], ""]),
        "a line inside": f"{text[:at]}\n{more}\n{text[at:]}",
    }[damage]
    with contextlib.suppress(RefusedOutput):
        assert recording.parse(*others, damaged) in (approximately(recording.expected), None, "")


def test_no_damage_makes_another_number(capsys):
    status = mutations.main(["--places", str(_PLACES)])
    printed = capsys.readouterr().out
    assert status == 0, printed
    total = next(line.split() for line in printed.splitlines() if line.startswith("all "))
    calls, own, refused, wrong, once = map(int, total[1:])
    assert calls == own + refused + wrong + once
    assert calls > 100 * len({r.parser for r in all_recordings()})


def test_damages_are_where_they_should_be():
    text = "one 1\ntwo 2\n"
    lost = [damaged for _, damaged, _ in mutations.damages(text, "character lost")]
    assert lost[:2] == ["ne 1\ntwo 2\n", "oe 1\ntwo 2\n"]
    assert len(lost) == len(text)
    assert [d for _, d, _ in mutations.damages(text, "line lost")] == ["two 2\n", "one 1\n"]
    assert next(mutations.damages(text, "line doubled")) == (0, f"one 1\n{text}", "")
    assert [at for at, _, _ in mutations.damages(text, "kernel text", 3)] == [0, 4, 8]


def test_a_wrong_number_is_counted_and_ends_the_program_with_1(monkeypatch, capsys):
    (recording,) = [r for r in all_recordings() if r.name == "lmbench/memory-1m"]
    monkeypatch.setattr(mutations, "subjects", lambda: [recording])
    monkeypatch.setattr(mutations, "ONCE", {})
    assert mutations.main([]) == 1
    assert "lmbench/memory-1m: character lost at" in capsys.readouterr().out
