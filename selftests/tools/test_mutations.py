"""Damaged outputs give their own number or none; `python -m selftests.instruments.mutations` has all."""

from selftests.instruments import mutations
from selftests.support.recordings import all_recordings

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
