"""What this host remembers of a board's medium, and when that is not enough to leave it alone."""

import pytest

from evmperf.lab.provision.record import Book, InstallationRecord
from selftests.provision.test_ways import board

A, B = ("a.wic", "a" * 64), ("b.wic", "b" * 64)
LEFT = InstallationRecord(*A, booted=True, medium="cid1", mounts=7, starts=2)


@pytest.fixture
def book(tmp_path, monkeypatch):
    monkeypatch.setenv("EVMPERF_STATE", str(tmp_path / "state"))
    return Book(board(tmp_path))


@pytest.mark.parametrize(
    ("medium", "mounts", "said"),
    [
        ("cid1", 9, ""),
        ("cid1", 8, ""),  # one start got no further than U-Boot
        ("cid1", 10, "10, not 7 to 9: somebody else"),
        ("cid1", 1, "is 1, not 7 to 9"),  # counted anew: checked or made again
        ("cid2", 9, "cid2, not cid1"),
        ("", 9, "none, not cid1"),
        ("cid1", None, "is None, not 7 to 9"),
    ],
)
def test_a_medium_that_is_not_as_it_was_left_is_told(medium, mounts, said):
    reason = LEFT.why_other(medium, mounts)
    assert said in reason
    assert bool(reason) == bool(said)


def test_a_record_of_another_version_is_none(book):
    book.begins(*A)
    text = book.file.read_text()
    for wrong in (text.replace('"schema":3', '"schema":2'), "{"):
        book.file.write_text(wrong)
        assert book.read() == InstallationRecord()
