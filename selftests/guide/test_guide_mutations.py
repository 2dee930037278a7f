"""Mistakes of writers, in a few tables; `python -m selftests.guide_mutations` has all."""

import pytest

from selftests import guide_mutations
from selftests.support import seeds


def test_no_wrong_number_is_accepted_in_silence():
    made, wrong, silent = guide_mutations.tried(every=9, guides=1)
    assert sum(made.values()) > 150
    assert sum(wrong.values()) > 50
    assert {name: [bad for _, bad, _ in found] for name, found in silent.items()} == {}


@pytest.mark.skipif(not seeds.files(), reason="shared/seeds is not beside the checkout")
def test_the_coverage_of_a_guide_says_what_is_not_read(monkeypatch, capsys):
    name, text = guide_mutations.published()[0]
    lost = text.replace("LMBench", "Strange Bench")
    monkeypatch.setattr(guide_mutations, "published", lambda: [(name, text), ("other", lost)])
    assert guide_mutations.main(["--coverage"]) == 0
    _, whole, other, *said = capsys.readouterr().out.splitlines()
    _, tables, read, cells, known = whole.rsplit(maxsplit=4)
    assert (tables, cells) == (read, known)
    _, *rest = other.rsplit(maxsplit=4)
    assert rest[0] == tables
    assert int(rest[1]) == int(tables) - 1
    assert int(rest[3]) < int(cells)
    assert any("line" in line for line in said)
