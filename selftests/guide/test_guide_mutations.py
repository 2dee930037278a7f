"""Mistakes of writers, in a few tables; `python -m selftests.guide_mutations` has all."""

from selftests import guide_mutations


def test_no_wrong_number_is_accepted_in_silence():
    made, wrong, silent = guide_mutations.tried(every=9, guides=1)
    assert sum(made.values()) > 150
    assert sum(wrong.values()) > 50
    assert {name: [bad for _, bad, _ in found] for name, found in silent.items()} == {}
