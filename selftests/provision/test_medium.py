"""Making a medium equal to an image: on files, loop devices, and through a connection."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from evmperf.lab.provision.writer import Medium
from selftests.provision import cards, imagelab
from selftests.provision.cards import assert_equal, put, used_card
from selftests.provision.imagelab import MIB


def test_a_used_card_becomes_the_image_holes_and_all(image, card, host):
    done = put(image, card, host)
    assert_equal(card, image)
    assert done["written"] == image.stat().st_size
    assert not done["repeated"]
    assert cards.mark(str(card)) is None


def test_the_same_image_again_writes_nothing(image, card, host):
    put(image, card, host)
    before = card.stat().st_mtime_ns
    done = put(image, card, host)
    assert done == {"written": 0, "repeated": 0, "already": True}
    assert card.stat().st_mtime_ns == before


@pytest.mark.parametrize("at", [0, 511, 4096, 4 * MIB + 5, 5 * MIB + 1535])
def test_only_what_differs_is_written(image, card, at):
    put(image, card)
    with card.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))
    done = put(image, card)
    assert 0 < done["written"] <= 1 << 16
    assert_equal(card, image)


def test_a_medium_that_differs_throughout_is_hardly_compared(tmp_path, monkeypatch):
    image, card = tmp_path / "image", used_card(tmp_path / "card", 48 * MIB)
    image.write_bytes(b"\x5a" * (48 * MIB))
    compared, during_write = [], []
    difference = Medium.difference

    def count(medium, offset, *rest):
        compared.append(offset)
        return difference(medium, offset, *rest)

    monkeypatch.setattr(Medium, "difference", count)
    put(image, card, progress=lambda what, *_: what == "write" and during_write.append(len(compared)))
    assert during_write[-1] < 16
    assert_equal(card, image)


def test_zeros_that_are_there_are_not_written_among_data_that_differs(tmp_path):
    image, card = tmp_path / "image", tmp_path / "card"
    for file, byte in ((image, b"\x5a"), (card, b"\xa5")):
        with file.open("wb") as disk:
            disk.truncate(48 * MIB)
            for at in range(0, 48, 2):
                disk.seek(at * MIB)
                disk.write(byte * MIB)
    done = put(image, card)
    assert done["written"] == 24 * MIB
    assert card.read_bytes() == image.read_bytes()


def test_a_block_device_becomes_the_image(image, card, loop):
    device = loop(card)
    put(image, device)
    subprocess.run(["sync"], check=True)
    assert_equal(card, image)
    assert put(image, device)["already"]


@pytest.mark.parametrize("length", [1, 512, 4096, 4097, MIB, MIB + 1, 2 * MIB])
def test_images_of_any_length(tmp_path, card, length):
    image = tmp_path / "image"
    image.write_bytes(random.Random(length).randbytes(length))
    put(image, card)
    assert_equal(card, image)


def test_file_systems_of_a_used_card_are_clean_whatever_a_map_leaves_out(tmp_path, loop):
    """What TI's recipe does to a used card, and what we do to it."""
    image = imagelab.build(tmp_path / "a.wic")
    card = used_card(tmp_path / "card", 12 * MIB)
    # As a decompression leaves it: zeros, also those that mean something, are holes.
    sparse = tmp_path / "sparse.wic"
    subprocess.run(["cp", "--sparse=always", str(image), str(sparse)], check=True)
    create = ["bmaptool", "--quiet", "create", "-o", str(tmp_path / "a.wic.bmap"), str(sparse)]
    subprocess.run(create, check=True, capture_output=True)
    # A device: of a file bmaptool makes a new one, as no card is.
    device = loop(card)
    copy = ["bmaptool", "--quiet", "copy", str(image), str(device)]
    subprocess.run(copy, check=True, capture_output=True)
    subprocess.run(["sync"], check=True)
    assert fsck(card), "this map leaves nothing out: the test proves nothing"
    put(image, device)
    subprocess.run(["sync"], check=True)
    assert fsck(card) == []
    assert_equal(card, image)


def fsck(card):
    """The programs that complain of a file system on the card."""
    bad = []
    for start, program, good in (
        (MIB, ["/usr/sbin/fsck.vfat", "-n"], 0),
        (2 * MIB, ["/usr/sbin/e2fsck", "-fn"], 0),
    ):
        part = card.with_suffix(".part")
        data = card.read_bytes()[start : start + (MIB if start == MIB else 5 * MIB)]
        part.write_bytes(data)
        done = subprocess.run([*program, str(part)], capture_output=True, check=False)
        if done.returncode != good:
            bad.append(program[0])
    return bad


TWO = """
import sys
from pathlib import Path
from selftests.provision.cards import put
from evmperf.lab.provision.cache import Cache
image = Cache(Path(sys.argv[1])).get(sys.argv[2])
print("at it", flush=True)
sys.stdin.readline()
put(image.content, Path(sys.argv[3]))
"""


def test_two_boards_at_once_by_one_host_each_get_all_of_it(tmp_path):
    raw = imagelab.build(tmp_path / "a.wic")
    packed = imagelab.pack(raw, "zst")
    cards = [used_card(tmp_path / f"card{number}", 10 * MIB) for number in range(2)]
    both = [
        subprocess.Popen(
            [sys.executable, "-c", TWO, tmp_path / "cache", packed, card],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[2],
        )
        for card in cards
    ]
    for process in both:
        assert process.stdout.readline() == "at it\n"
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        process.communicate(timeout=120)
    assert [process.returncode for process in both] == [0, 0]
    for card in cards:
        assert_equal(card, raw)
