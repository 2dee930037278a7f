"""Board files: each loads, and each mistake is named with file and word."""

from pathlib import Path

import pytest
import yaml

from evmperf.boards import board as boards
from evmperf.model.errors import UsageError

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
    """A function that writes a board file with some places of GOOD changed; None takes away."""

    def write(changes=()):
        main = yaml.safe_load(yaml.safe_dump(GOOD))
        for path, value in dict(changes).items():
            *way, last = path.split(".")
            place = main
            for key in way:
                place = place.setdefault(key, {})
            if value is None:
                del place[last]
            else:
                place[last] = value
        file = tmp_path / "x.yaml"
        file.write_text(yaml.safe_dump({"targets": {"main": main}}))
        return file

    return write


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
    board = boards.load(written())
    assert (board.name, board.features) == ("x-evm", {"boot", "emmc"})
    assert board.options.emmc.scratch == board.text("emmc", "scratch") == "/dev/mmcblk0p1"
    assert board.options.emmc.uboot_device == board.options.mmcsd.uboot_device == 0
    assert board.says("emmc", "uboot_device")
    assert not board.says("mmcsd", "uboot_device")
    assert board.options.emmc.device == ""
    assert board.options.boot.max_failures == 5
    assert not board.is_virtual


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": {"emmc": 1}}, ["features must be a list"]),
        ({"evmperf": {"emcc": {}}}, ["targets.main.evmperf", "'emcc'", "did you mean 'emmc'"]),
        ({"evmperf": ["emmc"]}, ["targets.main.evmperf must be a mapping"]),
        ({"evmperf": {"emmc": {"scratch": 1}}}, ["emmc.scratch", "type str", "not 1"]),
        ({"options.emmc": "x"}, ["options.emmc must be a mapping"]),
        ({"options.emmc.scrach": "/dev/x"}, ["options.emmc", "'scrach'", "did you mean 'scratch'"]),
        ({"options.emmc.scratch": 1}, ["options.emmc.scratch", "type str", "partition", "not 1"]),
        ({"options.emmc.uboot_device": "0"}, ["emmc.uboot_device", "type int", "not '0'"]),
        ({"options.emmc.uboot_device": True}, ["emmc.uboot_device", "type int", "not True"]),
        ({"options.board.profile": "fast"}, ["board.profile", "full, quick", "not 'fast'"]),
        ({"options.boot.medium": "floppy"}, ["boot.medium", "one of", "not 'floppy'"]),
        ({"options.emmc.scratch": ""}, ["emmc.scratch", "type str", "not ''"]),
        ({"options.emmc.device": [None]}, ["emmc.device", "type str", "not [None]"]),
        ({"options.emmc.uboot_device": -1}, ["emmc.uboot_device", "int >= 0", "not -1"]),
        ({"options.ospi": {"flash": ""}}, ["OSPI NOR, QSPI NAND", "not ''"]),
        ({"options.power": {"rails": "a"}}, ["power.rails", "type list", "not 'a'"]),
        ({"options.power": {"rails": [1]}}, ["power.rails", "not [1]"]),
        ({"options.absent": {"usb": 1}}, ["options.absent.usb ", "reason"]),
    ],
)
def test_a_mistake_is_named_with_file_and_word(written, changes, words):
    file = written(changes)
    with pytest.raises(UsageError) as error:
        boards.load(file)
    assert str(file) in str(error.value)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a: \x00", ["is not YAML"]),
        (b"", ["has no targets"]),
        (b"targets:\n  a: {}\n  b: {}\n", ["targets a, b", "none is called main"]),
        (b"targets:\n  main: 7\n", ["targets.main must be a mapping"]),
        (b"targets:\n  main:\n", ["targets.main must be a mapping"]),
        (b"just text", ["has no targets"]),
    ],
)
def test_a_file_that_is_no_board_says_so(tmp_path, content, words):
    file = tmp_path / "y.yaml"
    file.write_bytes(content)
    with pytest.raises(UsageError) as error:
        boards.load(file)
    for word in [str(file), *words]:
        assert word in str(error.value)
    assert "\n" not in str(error.value)


def test_a_board_is_found_by_path_by_name_and_without_its_suffix(tmp_path, written, monkeypatch):
    file = written()
    assert boards.find(str(file)) == file
    monkeypatch.chdir(tmp_path)
    assert boards.find("x.yaml") == boards.find("x") == Path("x.yaml")
    (tmp_path / "env").mkdir()
    file.rename(tmp_path / "env" / "x.yaml")
    assert boards.find("x.yaml") == boards.find("x") == Path("env/x.yaml")
    assert boards.find("am64x") == boards.ENV_DIR / "am64x.yaml"


def test_a_labs_own_file_comes_before_evmperfs_of_that_name(tmp_path, written, monkeypatch):
    (tmp_path / "env").mkdir()
    written().rename(tmp_path / "env" / "am64x.yaml")
    monkeypatch.chdir(tmp_path)
    assert boards.find("am64x") == Path("env/am64x.yaml")


def test_a_board_that_is_not_there_gets_a_suggestion_and_the_list():
    with pytest.raises(UsageError, match=r"no board file am64xy\.yaml.*did you mean am64x.*Known boards: am"):
        boards.find("am64xy.yaml")
    with pytest.raises(UsageError, match=r"zebra .*\./env .*Known"):
        boards.find("zebra")


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
