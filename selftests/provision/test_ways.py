"""Which way a board has for its images, and the lab's own command."""

from pathlib import Path

import pytest
from labgrid.target import Target

from evmperf.commands.cli import main as cli
from evmperf.lab.provision import installation
from evmperf.model.errors import LabError, UsageError
from evmperf.model.exits import ExitStatus
from selftests.provision import imagelab
from selftests.provision.cards import assert_equal, used_card
from selftests.provision.test_switch import Image
from selftests.support.boardfiles import fake_board


def board(tmp_path, medium="sd", **image):
    return fake_board(tmp_path / "b.yaml", boot={"medium": medium}, image=image)


@pytest.fixture
def image(tmp_path):
    file = tmp_path / "it's an image.wic"
    file.write_bytes(b"content")
    return Image(file)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ({}, r"b\.yaml gives no way .*USBSDMuxDriver"),
        ({"device": "/dev/mmcblk0"}, "no HTTPProvider with its driver"),
        ({"command": "flash"}, r"image\.command .*\{image\}"),
    ],
)
def test_a_board_without_a_whole_way_is_told_what_to_add(tmp_path, said, remedy):
    with pytest.raises(UsageError, match=remedy):
        installation.choose(Target("main"), board(tmp_path, **said), None)


def test_the_lab_s_own_command_gets_the_image_whatever_its_name_is(tmp_path, image):
    way = installation.choose(Target("main"), board(tmp_path, command="cp {image} flashed"), None)
    way.put(image, lambda *_: None)
    assert Path(tmp_path / "flashed").read_bytes() == b"content"


def test_a_command_that_fails_is_a_lab_failure_with_its_last_words(tmp_path, image):
    command = "echo no board on USB {image} >&2; exit 4"
    way = installation.choose(Target("main"), board(tmp_path, command=command), None)
    with pytest.raises(LabError, match=r" 4: no board on USB .*image\.wic"):
        way.put(image, lambda *_: None)


def test_the_command_writes_a_card_in_a_reader(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("EVMPERF_CACHE", str(tmp_path / "cache"))
    raw = imagelab.build(tmp_path / "a.wic")
    card = used_card(tmp_path / "card", 10 * imagelab.MIB)
    packed = imagelab.pack(raw, "zst")
    for written in (raw.stat().st_size >> 10, 0):
        assert cli.main(["image", "show", str(packed), "--write", str(card)]) == 0
        assert f"{card}: {written} KiB written, " in capsys.readouterr().out
    assert_equal(card, raw)
    assert (
        cli.main(["image", "show", str(packed), "--write", str(tmp_path / "none")]) == ExitStatus.LAB_BROKEN
    )
    assert "is missing" in capsys.readouterr().err
