"""Mistakes of writers, in a few tables; `python -m selftests.instruments.guide_mutations` has all."""

from selftests.instruments import guide_mutations
from selftests.support import seeds


def test_no_wrong_number_is_accepted_in_silence():
    done = guide_mutations.tried(guides=1, seconds=6)
    assert done.made.total() > 50
    assert done.wrong.total() > 15
    assert {name: [bad for _, bad, _ in found] for name, found in done.silent.items()} == {}


@seeds.needs("seeds")
def test_the_coverage_of_a_guide_says_what_is_not_read(monkeypatch, capsys):
    name, text = guide_mutations.published()[0]
    strange = '\n.. csv-table:: Strange Things\n    :header: "Thing","x"\n\n    "a","1"\n'
    guides = [(name, text), ("other", text + strange)]
    monkeypatch.setattr(guide_mutations, "published", lambda: guides)
    assert guide_mutations.main(["--coverage"]) == 0
    _, whole, other, *said = capsys.readouterr().out.splitlines()
    _, tables, read, cells, known = whole.rsplit(maxsplit=4)
    assert (tables, cells) == (read, known)
    _, *rest = other.rsplit(maxsplit=4)
    assert [int(number) for number in rest] == [int(tables) + 1, int(tables), int(cells) + 2, int(cells)]
    line = 1 + (text + strange)[: (text + strange).index(".. csv-table:: Strange")].count("\n")
    assert [message.split(":")[0].strip() for message in said if message] == [f"line {line}"]
