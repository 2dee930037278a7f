"""Board files: each loads, and is found by its name; ends of a boot, variations, files that are no text."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

import pytest
import yaml
from evmperf_guides import importer

from evmperf.boards import board as boards
from evmperf.boards import ends, variation, yamlfile
from evmperf.model.errors import UsageError

ENV = sorted(boards.ENV_DIR.glob("*.yaml"))
ENDS = yaml.safe_load(Path(__file__).with_name("ends.yaml").read_text())
GOOD = {
    "features": ["boot", "emmc"],
    "options": {
        "board": {"name": "x-evm", "title": "X", "description": "one X", "profile": "full"},
        "boot": {"medium": "sd"},
        "emmc": {"scratch": "/dev/mmcblk0p1", "uboot_device": 0},
    },
}


@pytest.fixture
def written(tmp_path):
    """The file of a good board."""
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump({"targets": {"main": GOOD}}))
    return file


@pytest.mark.parametrize("file", ENV, ids=lambda file: file.name)
def test_labgrid_reads_every_board_file_as_evmperf_does(file, monkeypatch):
    from labgrid.config import Config

    monkeypatch.setenv("LG_PLACE", "somewhere")
    main = Config(str(file)).data["targets"]["main"]
    assert set(main["features"]) == boards.load(file).features
    assert main["options"]["board"]["name"] == boards.load(file).name


def test_no_two_boards_share_a_name():
    names = [boards.load(file).name for file in ENV]
    assert len(set(names)) == len(names)


def test_a_good_file_says_what_it_says(written):
    board = boards.load(written)
    assert (board.name, board.features) == ("x-evm", {"boot", "emmc"})
    assert board.options.emmc.scratch == board.text("emmc", "scratch") == "/dev/mmcblk0p1"
    assert board.options.emmc.uboot_device == board.options.mmcsd.uboot_device == 0
    assert board.says("emmc", "uboot_device")
    assert not board.says("mmcsd", "uboot_device")
    assert board.options.emmc.device == ""
    assert board.options.boot.max_failures == 5
    assert not board.is_virtual


def test_a_board_is_found_by_path_by_name_and_without_its_suffix(tmp_path, written, monkeypatch):
    file = written
    assert boards.find(str(file)) == file
    monkeypatch.chdir(tmp_path)
    assert boards.find("x.yaml") == boards.find("x") == Path("x.yaml")
    (tmp_path / "env").mkdir()
    file.rename(tmp_path / "env" / "x.yaml")
    assert boards.find("x.yaml") == boards.find("x") == Path("env/x.yaml")
    assert boards.find("am64x") == boards.ENV_DIR / "am64x.yaml"


def test_a_labs_own_file_comes_before_evmperfs_of_that_name(tmp_path, written, monkeypatch):
    (tmp_path / "env").mkdir()
    written.rename(tmp_path / "env" / "am64x.yaml")
    monkeypatch.chdir(tmp_path)
    assert boards.find("am64x") == Path("env/am64x.yaml")


LABS = """
targets:
  %s:
    features: [wifi, emcc]
    options: {board: [1], boot: 7, emmc: none}
    resources: {RemotePlace: {name: rack-3}}
    drivers: [NetworkPowerDriver: {}, SerialDriver: {name: a}, ShellDriver: {prompt: '# '}]
    %s
options: {rack: 7}
"""


def test_a_file_of_a_labs_own_is_a_board_that_will_show_what_it_has(tmp_path):
    file = tmp_path / "rack.yaml"
    file.write_text(LABS % ("dut", ""))
    board = boards.load(file)
    assert (board.target, board.name, board.assumed, board.labels) == (
        "dut",
        "rack-3",
        True,
        {"wifi", "emcc"},
    )
    assert board.features == {"boot", "system", "crypto", "desk"}
    assert (board.options.board.profile, board.options.boot.medium, board.sections) == ("full", "", {})
    shown = board.shown({"desk": {"disks": ["emmc=/dev/mmcblk0"], "machine": "aarch64"}})
    assert (shown.assumed, shown.options.desk.disks) == (False, ("emmc=/dev/mmcblk0",))


@pytest.mark.parametrize("where", ["key", "beside", "beside with the key"])
def test_options_of_evmperfs_stand_under_a_key_or_in_a_file_beside(tmp_path, where):
    file, beside = tmp_path / "rack.yaml", tmp_path / "options.yaml"
    stated = {"board": {"name": "mine"}, "emmc": {"scratch": "/dev/mmcblk0p9"}}
    file.write_text(LABS % ("main", f"evmperf: {stated}" if where == "key" else ""))
    beside.write_text(yaml.safe_dump({"evmperf": stated} if where == "beside with the key" else stated))
    board = boards.load(file, options=None if where == "key" else beside)
    assert (board.name, board.options.emmc.scratch) == ("mine", "/dev/mmcblk0p9")
    assert {"emmc", "boot", "desk"} <= board.features


def test_words_of_each_kind():
    found = variation.parse(
        ["args:quiet mitigations=off", "uboot:bootdelay=0", "run:echo 1 >/sys/x", "image:a:b.wic"]
    )
    assert found.kernel_arguments == "quiet mitigations=off"
    assert found.uboot == {"bootdelay": "0"}
    assert found.commands == ("echo 1 >/sys/x",)
    assert found.image == "a:b.wic"
    assert str(found).startswith("args:quiet mitigations=off, uboot:bootdelay=0")
    nothing = variation.parse(["as-is"])
    assert (bool(nothing), str(nothing)) == (False, "as-is")


def test_a_file_of_words(tmp_path):
    (tmp_path / "fast.yaml").write_text("- args:quiet\n- 'run:echo a:b'\n")
    found = variation.parse(["fast.yaml", "args:ro"], tmp_path)
    assert found.kernel_arguments == "quiet ro"
    assert found.commands == ("echo a:b",)


ALIASES = "a: &a [x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in itertools.pairwise("abcdefgh")
)
"""Half a kilobyte for thirty million items."""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a: b\n" * 2_000_000, r"large\.yaml: is larger than 0\.25 MiB"),
        ("- " * 9000, r"large\.yaml.*recursion"),
        (ALIASES, r"large\.yaml.*aliases"),
    ],
    ids=["large", "deep", "aliases"],
)
def test_a_large_or_deep_file_is_refused(tmp_path, text, cause):
    file = tmp_path / "large.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=cause):
        yamlfile.read(file)


def test_a_pipe_is_not_waited_for(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (yamlfile.read, importer.load):
        with pytest.raises(UsageError, match="pipe: is no regular file"):
            read(pipe)


@pytest.fixture
def board_with(tmp_path: Path):
    """A function that gives the board whose file has these ends."""

    def load(text: str) -> boards.Board:
        source = (boards.ENV_DIR / "virtual.yaml").read_text()
        file = tmp_path / "mine.yaml"
        stated = f"        medium: virtio\n        ends:\n          {text}\n"
        file.write_text(source.replace("        medium: virtio\n", stated, 1))
        return ends.checked(boards.load(file))

    return load


def test_words_of_the_command_line_join_those_of_the_file(board_with):
    words = ("net=ping:192.168.100.2", "web=http://h:81/x?y", "ssh=tcp:[::1]:22", "gui=unit:weston@1.service")
    own = "app: {line: '^ready', within_s: 9}\n          old: {tcp: 'h:1', interval_ms: 50}"
    board = ends.checked(board_with(own), words)
    stated = board.options.boot.ends
    assert [*stated] == ["app", "old", "net", "web", "ssh", "gui"]
    assert stated["app"].within_s == 9
    assert [ends.address(stated[name]) for name in ("web", "ssh")] == [("h", 81), ("::1", 22)]
    assert ends.described(stated)["web"] == "http http://h:81/x?y"
    intervals = {name: end.interval_ms for name, end in ends.of_board(board).items()}
    assert intervals == {"app": 20, "old": 50, "net": 200, "web": 200, "ssh": 200, "gui": 20}


@pytest.mark.parametrize(("text", "said"), ENDS["file"])
def test_an_end_that_cannot_come_is_refused_with_its_file(board_with, text, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        board_with(text)


@pytest.mark.parametrize(("word", "said"), ENDS["words"])
def test_a_wrong_word_is_refused(board_with, word, said):
    board = board_with("other: {line: x}")
    with pytest.raises(UsageError, match=f"^--end={re.escape(word)}: .*{re.escape(said)}"):
        ends.checked(board, [word])


def test_a_url_with_a_password_is_refused_and_not_shown(board_with):
    with pytest.raises(UsageError, match="without a user") as refused:
        ends.checked(board_with("other: {line: x}"), ["app=http://bob:opensesame@h/"])
    assert "opensesame" not in str(refused.value)
