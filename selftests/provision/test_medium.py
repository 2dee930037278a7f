"""Making a medium equal to an image: on files, loop devices, and through a connection."""

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evmperf.model.errors import LabError, UsageError
from evmperf.provision import writer
from evmperf.provision.medium import MediumError
from evmperf.provision.remote import Host
from evmperf.provision.writer import Content
from selftests.provision import imagelab
from selftests.provision.imagelab import MIB

USED = 0xA5
"""Every byte of a card that has been used."""
SHELL = ["sh", "-c", 'exec sh -c "$*"', "_"]
"""What ssh does with its words, without a network."""


@pytest.fixture(scope="session")
def image(tmp_path_factory):
    """5 MiB and a half sector less than whole pages, with holes; its first and last are data."""
    file = tmp_path_factory.mktemp("image") / "image"
    size = 5 * MIB + 1536
    draw = random.Random(7)
    with file.open("wb") as disk:
        disk.truncate(size)
        for start, length in ((0, 5000), (MIB + 70_000, 300), (3 * MIB, MIB), (size - 900, 900)):
            disk.seek(start)
            disk.write(draw.randbytes(length))
    return file


@pytest.fixture
def card(tmp_path):
    return used_card(tmp_path / "card", 8 * MIB)


def used_card(file, size):
    file.write_bytes(bytes([USED]) * size)
    return file


def content_of(image):
    data = image.read_bytes()
    return Content(len(data), hashlib.sha256(data).hexdigest(), image.name)


def put(image, card, host=None, progress=lambda *_: None):
    content = content_of(image)
    source = writer.chunks_of(str(image), content.size)
    return (host or Host()).put(str(card), source, content, progress)


def assert_equal(card, image):
    """The image, and behind it what the card held before."""
    data, want = card.read_bytes(), image.read_bytes()
    assert data[: len(want)] == want
    assert set(data[len(want) :]) <= {USED}


@pytest.fixture
def loop(tmp_path):
    """A function that gives a block device with this file behind it."""
    devices = []

    def attach(file, *options):
        command = ["/usr/sbin/losetup", "--find", "--show", *options, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no loop devices here: {done.stderr.strip()}")
        devices.append(Path(done.stdout.strip()))
        return devices[-1]

    attach.devices = devices
    yield attach
    for device in devices:
        subprocess.run(["/usr/sbin/losetup", "--detach", device], check=True)


@pytest.fixture
def dying(tmp_path, loop):
    """A block device that takes no more from its second mebibyte on: what is behind it is full."""
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", full], check=True)
    try:
        file = full / "disk"
        with file.open("wb") as disk:
            disk.truncate(8 * MIB)
        device = loop(file)
        yield device
        loop.devices.remove(device)
        subprocess.run(["/usr/sbin/losetup", "--detach", device], check=True)
    finally:
        subprocess.run(["umount", "--lazy", full], check=True)


@pytest.fixture(params=["here", "behind a connection"])
def host(request):
    return Host() if request.param == "here" else Host(SHELL, "the other host")


def test_a_used_card_becomes_the_image_holes_and_all(image, card, host):
    done = put(image, card, host)
    assert_equal(card, image)
    assert done["written"] == image.stat().st_size
    assert not done["repeated"]
    assert host.mark(str(card)) is None


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


# Refused before anything is written


def test_a_card_that_is_too_small_stays_as_it_is(image, tmp_path, host):
    card = used_card(tmp_path / "card", 5 * MIB)
    with pytest.raises(UsageError, match=rf"has {5 * MIB + 1536} bytes and .* only {5 * MIB}"):
        put(image, card, host)
    assert set(card.read_bytes()) == {USED}


def test_no_card_is_said_so(image, tmp_path, host):
    with pytest.raises(LabError, match="is not there: does the switch reach this host"):
        put(image, tmp_path / "none", host)
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(LabError, match="has no medium: is the card in"):
        put(image, empty, host)


def test_a_write_protected_card_is_said_so(image, card, loop):
    device = loop(card, "--read-only")
    with pytest.raises(LabError, match=r"write-protect"):
        put(image, device)
    assert set(card.read_bytes()) == {USED}


def test_a_mounted_card_is_refused(image, card, loop, tmp_path):
    subprocess.run(["/usr/sbin/mke2fs", "-q", "-F", str(card)], check=True)
    device = loop(card)
    (tmp_path / "mnt").mkdir()
    subprocess.run(["mount", str(device), str(tmp_path / "mnt")], check=True)
    try:
        with pytest.raises(LabError, match=r"is in use here \(mounted\?\)"):
            put(image, device)
    finally:
        subprocess.run(["umount", str(tmp_path / "mnt")], check=True)


def test_one_card_asked_for_twice_at_a_time(image, card):
    seen = []

    def second(what, *_):
        if not seen:
            with pytest.raises(LabError, match="is being written by somebody else") as refused:
                put(image, card)
            seen.append(refused)

    put(image, card, progress=second)
    assert seen
    assert_equal(card, image)


TWO = """
import sys
from selftests.provision.test_medium import put, Path
from evmperf.provision.cache import Cache
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
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=Path(__file__).resolve().parents[2],
        )
        for card in cards
    ]  # fmt: skip
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


# Faults


def test_an_image_that_changes_while_it_is_written_never_becomes_whole(image, card):
    content = content_of(image)._replace(sha256="0" * 64)
    with pytest.raises(UsageError, match="the image changed while it was written"):
        Host().put(str(card), writer.chunks_of(str(image), content.size), content, lambda *_: None)
    assert writer.mark(str(card)) == {"image": "image", "sha256": "0" * 64}


def flip(card, at):
    with card.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0x10]))


@pytest.mark.parametrize("at", [4096, 3 * MIB + 12_345, 5 * MIB + 1000])
def test_a_byte_that_reads_back_as_another_is_written_once_more(image, card, at):
    flips = []

    def spoil(what, done, whole):
        if what == "write" and done == whole and not flips:
            flip(card, at)
            flips.append(at)

    done = put(image, card, progress=spoil)
    assert done["repeated"]
    assert_equal(card, image)


def test_a_card_that_does_not_keep_a_byte_is_named_with_the_byte(image, card):
    at = 3 * MIB + 12_345

    def spoil(what, done, whole):
        if what == "write" and done == whole:
            flip(card, at)

    with pytest.raises(LabError, match=rf"byte {at} reads back as another") as failed:
        put(image, card, progress=spoil)
    assert "replace the medium" in str(failed.value)
    assert writer.mark(str(card)) is not None


def test_i_o_errors_in_the_middle_name_the_byte(image, card, loop):
    device = loop(card)
    # What is behind the device ends now in its middle: reading there is an I/O error.
    os.truncate(card, 2 * MIB)
    with pytest.raises(LabError, match=r"cannot be (read|written) at byte \d+ .*replace it"):
        put(image, device)


def test_a_card_that_takes_no_more_in_the_middle_names_the_byte(tmp_path, dying):
    image = tmp_path / "image"
    image.write_bytes(random.Random(3).randbytes(6 * MIB))
    with pytest.raises(LabError, match=r"cannot be written at byte \d+"):
        put(image, dying)
    assert writer.mark(str(dying))["image"] == "image"


KILLED = """
import sys, time
from evmperf.provision import writer
from evmperf.provision.medium import MediumError
from evmperf.provision.remote import Host
from selftests.provision.test_medium import content_of, Path
image, card = Path(sys.argv[1]), sys.argv[2]
def slowly(what, done, whole):
    print(what, done, flush=True)
    if done > whole // 2:
        time.sleep(60)
content = content_of(image)
Host().put(card, writer.chunks_of(str(image), content.size), content, slowly)
"""


def test_a_write_that_is_killed_leaves_a_card_that_nobody_boots(image, card):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(image), str(card)],
        stdout=subprocess.PIPE, text=True, cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    try:
        while int(process.stdout.readline().split()[1]) <= image.stat().st_size // 2:
            pass
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    said = writer.mark(str(card))
    assert said["image"] == "image"
    table = subprocess.run(
        ["/usr/sbin/sfdisk", "--dump", str(card)], capture_output=True, check=False
    )
    assert table.returncode, "a card with a partition table may be booted"
    put(image, card)
    assert_equal(card, image)
    assert writer.mark(str(card)) is None


def test_a_connection_that_is_cut_leaves_the_mark(image, card):
    content = content_of(image)

    def cut():
        yield from list(writer.chunks_of(str(image), content.size)())[:3]
        raise OSError("cut")

    with pytest.raises(OSError, match="cut"):
        Host(SHELL, "the other host").put(str(card), cut, content, lambda *_: None)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        # The program there ends when its input does.
        with contextlib.suppress(MediumError):
            assert writer.mark(str(card)) is not None
            return
    pytest.fail("the card is still held")


def test_a_host_without_python_is_said_so(image, card):
    with pytest.raises(LabError, match=r"ended the writing of .*: .*not found"):
        put(image, card, Host(["sh", "-c", "nothing-like-python"], "the exporter"))
    assert set(card.read_bytes()) == {USED}


def test_a_host_that_greets_is_said_so(image, card):
    with pytest.raises(LabError, match="the exporter does not run our program"):
        put(image, card, Host(["sh", "-c", "echo welcome; cat >/dev/null"], "the exporter"))


def test_the_mark_says_of_what_it_is(image, card):
    text = writer.MARK + json.dumps({"image": "a.wic"}).encode()
    card.write_bytes(text.ljust(8 * MIB, b"\0"))
    assert writer.mark(str(card)) == {"image": "a.wic"}
    card.write_bytes(writer.MARK.ljust(8 * MIB, b"\0"))
    assert writer.mark(str(card)) == {}
