"""An image on a medium: on files, loop devices, and at another host; and a medium that cannot have it."""

import os
import subprocess

import pytest

from evmperf.model.errors import LabError, UsageError
from selftests.provision.imagelab import MIB, SHELL, USED, Image, assert_equal, put, used_card

anywhere = pytest.mark.parametrize("prefix", [[], SHELL], ids=["here", "there"])


@anywhere
@pytest.mark.parametrize("size", [MIB, MIB + 1, 5 * MIB + 1536])
def test_a_used_card_becomes_the_image_zeros_and_all(tmp_path, card, size, prefix):
    image, before = Image(tmp_path / "image", size), []
    put(image, card, lambda: before.append(set(card.read_bytes())), prefix)
    assert_equal(card, image)
    assert before == [{USED}]


def test_a_block_device_becomes_the_image(image, card, loop):
    put(image, loop(card))
    subprocess.run(["sync"], check=True)
    assert_equal(card, image)


@anywhere
def test_a_card_that_is_too_small_or_missing_stays_as_it_is(image, tmp_path, prefix):
    card, empty = used_card(tmp_path / "card", 5 * MIB), tmp_path / "empty"
    empty.touch()
    said = []
    for medium, wrong, sentence in (
        (card, UsageError, rf"has {image.size} bytes and .* only {5 * MIB}"),
        (empty, LabError, "has no medium: check the card"),
        (tmp_path / "none", LabError, r"none cannot be looked at .*No such file.*cable"),
    ):
        with pytest.raises(wrong, match=sentence):
            put(image, medium, lambda: said.append(1), prefix)
    assert set(card.read_bytes()) == {USED}
    assert said == []


def test_a_write_protected_card_is_said_so(image, card, loop):
    with pytest.raises(LabError, match=r"write-protect"):
        put(image, loop(card, "--read-only"))
    assert set(card.read_bytes()) == {USED}


def test_a_mounted_card_is_refused(image, mounted):
    with pytest.raises(LabError, match=r"is in use there \(mounted\?\)"):
        put(image, mounted)


def test_a_card_that_another_process_holds_stays_as_it_is(image, card, loop):
    """As another evmperf that writes it, or a second device of btrfs, of which no mount tells."""
    device = loop(card)
    holder = os.open(device, os.O_RDWR | os.O_EXCL)
    try:
        with pytest.raises(LabError, match=r"cannot be held .*busy"):
            put(image, device)
    finally:
        os.close(holder)
    assert set(card.read_bytes()) == {USED}


@pytest.mark.parametrize(
    ("program", "sentence"),
    [("nothing-like-a-shell", "cannot be looked at .*not found"), ("echo welcome", "says nothing of it")],
)
def test_a_host_that_cannot_look_at_the_card_is_said_so(image, card, program, sentence):
    with pytest.raises(LabError, match=sentence):
        put(image, card, prefix=["sh", "-c", program, "_"])
    assert set(card.read_bytes()) == {USED}


def test_a_card_that_does_not_keep_a_byte_is_said_so(image, card):
    def spoil():
        with card.open("r+b") as file:
            file.seek(3 * MIB)
            file.write(b"x")

    with pytest.raises(LabError, match=r"reads back with SHA-256 .*replace the medium"):
        put(image, card, spoil=spoil)


def test_a_card_that_takes_no_more_in_the_middle_is_said_so(image, dying):
    with pytest.raises(LabError, match=r"cannot be written \(dd: .*replace the medium"):
        put(image, dying)


def test_a_card_that_cannot_be_read_back_is_said_so(image, card, loop):
    with pytest.raises(LabError, match=r"cannot be read back \(dd: .*replace the medium"):
        put(image, loop(card), spoil=lambda: os.truncate(card, 2 * MIB))
