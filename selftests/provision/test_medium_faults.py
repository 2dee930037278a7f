"""A medium that cannot be made equal to an image: refused beforehand, or never called whole."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evmperf.lab.provision import writer
from evmperf.lab.provision.ways import Host
from evmperf.lab.provision.writer import Medium, MediumError
from evmperf.model.errors import LabError, UsageError
from selftests.provision import cards
from selftests.provision.cards import SHELL, USED, assert_equal, content_of, flip, put, used_card
from selftests.provision.imagelab import MIB

# Refused before anything is written


def test_a_card_that_is_too_small_stays_as_it_is(image, tmp_path, host):
    card = used_card(tmp_path / "card", 5 * MIB)
    with pytest.raises(UsageError, match=rf"has {5 * MIB + 1536} bytes and .* only {5 * MIB}"):
        put(image, card, host)
    assert set(card.read_bytes()) == {USED}


def test_no_card_is_said_so(image, tmp_path, host):
    with pytest.raises(LabError, match=r"none is missing: .*cable"):
        put(image, tmp_path / "none", host)
    empty = tmp_path / "empty"
    empty.touch()
    with pytest.raises(LabError, match="has no medium: check the card"):
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
            with pytest.raises(LabError, match="is being written by another process") as refused:
                put(image, card)
            seen.append(refused)

    put(image, card, progress=second)
    assert seen
    assert_equal(card, image)


# While it is written


def test_an_image_that_changes_while_it_is_written_never_becomes_whole(image, card):
    content = content_of(image)._replace(sha256="0" * 64)
    with pytest.raises(UsageError, match="image changed"):
        Host().put(str(card), writer.chunks_of(str(image), content.size), content, lambda *_: None)
    assert cards.mark(str(card)) == {"image": "image", "sha256": "0" * 64}


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
    assert cards.mark(str(card)) is not None


def test_i_o_errors_in_the_middle_name_the_byte(image, card, loop):
    device = loop(card)
    # What is behind the device ends now in its middle: reading there is an I/O error.
    os.truncate(card, 2 * MIB)
    with pytest.raises(LabError, match=r"(read|written) at byte \d+ .*replace it"):
        put(image, device)


def test_a_card_that_takes_no_more_in_the_middle_names_the_byte(tmp_path, dying):
    image = tmp_path / "image"
    image.write_bytes(random.Random(3).randbytes(6 * MIB))
    with pytest.raises(LabError, match=r"cannot be written at byte \d+"):
        put(image, dying)
    assert cards.mark(str(dying))["image"] == "image"


KILLED = """
import sys, time
from evmperf.lab.provision import writer
from evmperf.lab.provision.writer import Medium, MediumError
from evmperf.lab.provision.ways import Host
from pathlib import Path
from selftests.provision.cards import content_of
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
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    try:
        while int(process.stdout.readline().split()[1]) <= image.stat().st_size // 2:
            pass
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    said = cards.mark(str(card))
    assert said["image"] == "image"
    table = subprocess.run(["/usr/sbin/sfdisk", "--dump", str(card)], capture_output=True, check=False)
    assert table.returncode, "a card with a partition table may be booted"
    put(image, card)
    assert_equal(card, image)
    assert cards.mark(str(card)) is None


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
        with contextlib.suppress(MediumError), contextlib.closing(Medium(str(card))):
            assert cards.mark(str(card)) is not None
            return
    pytest.fail("the card is still held")


def test_a_host_without_python_is_said_so(image, card):
    with pytest.raises(LabError, match=r"ended the writing of .*: .*not found"):
        put(image, card, Host(["sh", "-c", "nothing-like-python"], "the exporter"))
    assert set(card.read_bytes()) == {USED}


def test_a_host_that_greets_is_said_so(image, card):
    with pytest.raises(LabError, match=r"exporter .*protocol"):
        put(image, card, Host(["sh", "-c", "echo welcome; cat >/dev/null"], "the exporter"))
