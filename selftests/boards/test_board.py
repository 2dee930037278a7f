"""Board files: each loads, and is found by its name."""

from pathlib import Path

import pytest
import yaml

from evmperf.boards import board as boards

ENV = sorted(boards.ENV_DIR.glob("*.yaml"))
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
