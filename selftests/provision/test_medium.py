"""An image on a medium: on files, loop devices, and at another host; and a medium that cannot have it."""

import os
import random
import subprocess

import pytest

from evmperf.model.errors import LabError, UsageError
from selftests.provision import cards, imagelab
from selftests.provision.cards import SHELL, USED, assert_equal, put, used_card
from selftests.provision.imagelab import MIB


@pytest.mark.parametrize("prefix", [[], SHELL], ids=["here", "there"])
def test_a_used_card_becomes_the_image_zeros_and_all(image, card, prefix):
    before = []
    put(image, card, lambda: before.append(set(card.read_bytes())), prefix)
    assert_equal(card, image)
    assert before == [{USED}]


def test_a_block_device_becomes_the_image_and_its_file_systems_are_clean(tmp_path, loop):
    image = imagelab.build(tmp_path / "a.wic")
    card = used_card(tmp_path / "card", 12 * MIB)
    put(image, loop(card))
    subprocess.run(["sync"], check=True)
    assert_equal(card, image)
    for start, size, check in ((1, 1, "/usr/sbin/fsck.vfat"), (2, 5, "/usr/sbin/e2fsck")):
        part = tmp_path / "part"
        part.write_bytes(card.read_bytes()[start * MIB : (start + size) * MIB])
        words = [check, "-n", *(["-f"] if "e2fsck" in check else []), str(part)]
        assert subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("length", [MIB, MIB + 1, 2 * MIB + 4097])
def test_images_of_any_length(tmp_path, card, length):
    image = tmp_path / "image"
    image.write_bytes(random.Random(length).randbytes(length))
    put(image, card)
    assert_equal(card, image)


# Refused before anything is written


@pytest.mark.parametrize("prefix", [[], SHELL], ids=["here", "there"])
def test_a_card_that_is_too_small_or_missing_stays_as_it_is(image, tmp_path, prefix):
    card, empty = used_card(tmp_path / "card", 5 * MIB), tmp_path / "empty"
    empty.touch()
    said = []
    for medium, wrong, sentence in (
        (card, UsageError, rf"has {5 * MIB + 1536} bytes and .* only {5 * MIB}"),
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


def test_a_mounted_card_is_refused(image, card, loop, tmp_path):
    subprocess.run(["/usr/sbin/mke2fs", "-q", "-F", str(card)], check=True)
    device = loop(card)
    (tmp_path / "mnt").mkdir()
    subprocess.run(["mount", str(device), str(tmp_path / "mnt")], check=True)
    try:
        with pytest.raises(LabError, match=r"is in use there \(mounted\?\)"):
            put(image, device)
    finally:
        subprocess.run(["umount", str(tmp_path / "mnt")], check=True)


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


# While it is written


def test_a_card_that_does_not_keep_a_byte_is_said_so(image, card):
    with pytest.raises(LabError, match=r"reads back with SHA-256 .*replace the medium"):
        put(image, card, spoil=lambda: cards.flip(card, 3 * MIB + 12_345))


def test_a_card_that_takes_no_more_in_the_middle_is_said_so(tmp_path, dying):
    image = tmp_path / "image"
    image.write_bytes(random.Random(3).randbytes(6 * MIB))
    with pytest.raises(LabError, match=r"cannot be written \(dd: .*replace the medium"):
        put(image, dying)


def test_a_card_that_cannot_be_read_back_is_said_so(image, card, loop):
    with pytest.raises(LabError, match=r"cannot be read back \(dd: .*replace the medium"):
        put(image, loop(card), spoil=lambda: os.truncate(card, 2 * MIB))
