"""What this host remembers of a board's medium, and when that is not enough to leave it alone."""

import pytest
from msgspec.structs import replace

from evmperf.lab.provision.record import Book, InstallationEntry, InstallationRecord
from selftests.provision.test_ways import board

A = InstallationEntry("a.wic", "a.wic", "/a.wic", "1" * 64, "a" * 64)
B = replace(A, name="b.wic", content="b" * 64)


@pytest.fixture
def book(tmp_path, monkeypatch):
    monkeypatch.setenv("EVMPERF_STATE", str(tmp_path / "state"))
    return Book(board(tmp_path))


def test_an_image_that_was_written_whole_and_booted_may_be_there(book):
    assert not book.read().may_hold(A.content)
    book.begins(A)
    assert not book.read().may_hold(A.content)
    book.written()
    assert not book.read().may_hold(A.content)
    book.booted("cid1")
    assert book.read().may_hold(A.content)
    assert not book.read().may_hold(B.content)
    book.begins(B)
    assert book.read() == InstallationRecord(on_board=B, writing=True, good=A)


def test_a_record_of_another_version_is_none(book):
    book.begins(A)
    text = book.file.read_text()
    book.file.write_text(text.replace('"schema":3', '"schema":2'))
    assert book.read() == InstallationRecord()
    book.file.write_text("{")
    assert book.read() == InstallationRecord()
