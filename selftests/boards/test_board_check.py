"""`evmperf board`: each mistake in a board file is named, and a new file has none."""

import json
import re
import textwrap
from pathlib import Path

import pytest

from evmperf.benchmarks.catalogue import benchmarks
from evmperf.boards import board as boards
from evmperf.boards.options import MAPPINGS
from evmperf.boards.vocabulary import known_options, sections
from evmperf.commands.cli.main import main
from evmperf.model.exits import ExitStatus
from selftests.support.seeds import place

ROOT = Path(__file__).parents[2]
PLACE = boards.ENV_DIR / "am64x.yaml"
LOCAL = boards.ENV_DIR / "virtual.yaml"
STRATEGY = "      K3BootStrategy: {}\n"
SLOW = "      K3BootStrategy: {boot_timeout: '1'}\n"
TYPO = "      K3BootStrategy: {boot_timout: 1}\n"
POWER = "      NetworkPowerDriver:\n        delay: 0.0\n"
MERGED = "      NetworkPowerDriver:\n        <<: {delay: 0.0}\n"


@pytest.mark.parametrize("file", sorted(boards.ENV_DIR.glob("*.yaml")), ids=lambda file: file.stem)
def test_the_files_that_come_with_evmperf_have_no_mistake(file, capsys):
    assert main(["board", "check", str(file)]) == 0
    said = capsys.readouterr()
    assert "rows can be measured" in said.out
    assert said.err == ""


def test_the_file_of_the_first_page_has_no_mistake(tmp_path, monkeypatch, capsys):
    page = (ROOT / "README.md").read_text()
    block = re.search(r"^    imports:.*?^$", page, re.M | re.S)[0]
    (tmp_path / "mine.yaml").write_text(textwrap.dedent(block))
    assert main(["board", "check", str(tmp_path / "mine.yaml")]) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ((PLACE, "K3BootStrategy", "K3BootStrategie"), 0, ["did you mean K3BootStrategy?", "left out"]),
        ((PLACE, "NetworkPowerDriver", "NetworkPowrDriver"), 0, ["did you mean NetworkPowerDriver?"]),
        ((PLACE, "RemotePlace", "Place51"), 4, ["resources", "no class 'Place51'", "imports?"]),
        ((PLACE, "  - evmperf.lab.shell\n", ""), 0, ["EvmShellDriver needs evmperf.lab.shell"]),
        ((PLACE, "evmperf.lab.shell", "evmperf.lab.shel"), 4, ["imports", "No module named"]),
        ((PLACE, STRATEGY, TYPO), 0, ["did you mean boot_timeout"]),
        ((PLACE, STRATEGY, SLOW), 4, ["must be <class 'int'>"]),
        ((PLACE, "$LG_PLACE", "$PLACE"), 4, ["$BASE", "LG_", "not $PLACE"]),
        ((PLACE, "$LG_PLACE", "${LG_PLACE"), 4, ["write $NAME"]),
        ((PLACE, "    resources:", "    ressources:"), 4, ["'ressources'", "did you mean 'resources'"]),
        ((PLACE, "targets:", "pahts: {}\ntargets:"), 0, ["'pahts'", "did you mean 'paths'"]),
        ((PLACE, "features: [boot,", "features: [bot,"), 0, ["'bot'", "did you mean 'boot'"]),
        ((PLACE, "      boot:", "      bot: {}\n      boot:"), 0, ["options", "did you mean 'boot'"]),
        ((PLACE, "      boot:", "      absent: {emcm: x}\n      boot:"), 4, ["options.absent", "'emmc'"]),
        ((LOCAL, "        port: 7001\n", ""), 4, ["NetworkSerialPort.port is missing"]),
        ((LOCAL, "      StampedSerialDriver: {}\n", ""), 4, ["no ConsoleProtocol precedes it"]),
        ((LOCAL, POWER, MERGED), 4, ["line ", "merge"]),
    ],
)
def test_a_mistake_is_named_with_the_file(tmp_path, capsys, change, status, words):
    file, right, wrong = change
    text = file.read_text()
    assert right in text
    spoilt = tmp_path / "spoilt.yaml"
    spoilt.write_text(text.replace(right, wrong))
    assert main(["board", "check", str(spoilt)]) == status
    said = capsys.readouterr().err
    for word in [str(spoilt), *words]:
        assert word in said


ENVS = place("real/labgrid-envs")
NOTHING = {"power-only", "remote-place"}
"""Of these nothing can be measured."""


@pytest.mark.parametrize("file", sorted(ENVS.glob("*.yaml")), ids=lambda file: file.stem)
def test_an_env_file_in_the_form_of_a_lab_is_accepted_unchanged(file, capsys, monkeypatch):
    monkeypatch.delenv("LG_PLACE", raising=False)
    assert main(["board", "check", str(file)]) == (ExitStatus.USAGE if file.stem in NOTHING else 0)
    said = capsys.readouterr()
    if file.stem in NOTHING:
        assert said.out == ""
        assert said.err.count("\n") == 1
        assert "nothing can be measured" in said.err
    else:
        assert int(re.search(r"(\d+) rows can be measured", said.out)[1]) > 300
        assert "Strategy: " in said.out


def test_what_a_file_can_and_cannot_do_is_said(tmp_path, capsys):
    file = tmp_path / "desk.yaml"
    file.write_text(LOCAL.read_text().replace(POWER, ""))
    assert main(["board", "check", str(file)]) == 0
    said = capsys.readouterr().out
    assert "Power: none" in said
    board = boards.load(file)
    reasons = {b.unsupported(board) for b in benchmarks().values() if b.driver == "boot"}
    assert all("cannot boot the board" in reason for reason in reasons)


def test_classes_may_be_a_list_as_labgrid_has_it(tmp_path, capsys):
    text = PLACE.read_text()
    before, _, drivers = text.partition("    drivers:\n")
    listed = "".join(f"      - {line.strip()}\n" for line in drivers.splitlines())
    file = tmp_path / "listed.yaml"
    file.write_text(f"{before}    drivers:\n{listed}")
    assert main(["board", "check", str(file)]) == 0
    file.write_text(f"{before}    drivers:\n{listed.replace('Strategy', 'Strategi')}")
    capsys.readouterr()
    assert main(["board", "check", str(file)]) == 0
    assert "did you mean K3BootStrategy" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "word", "status"),
    [
        ("/dev/mmcblk0", False, ExitStatus.USAGE),
        ("/dev/nvme0n1", False, ExitStatus.USAGE),
        ("/dev/sda", False, ExitStatus.USAGE),
        ("/dev/mmcblk0", True, 0),
        ("/dev/mmcblk0p2", False, 0),
        ("/dev/disk/by-partlabel/evmperf", False, 0),
    ],
)
def test_a_whole_disk_is_scratch_by_a_word_of_its_own_only(tmp_path, capsys, name, word, status):
    text = PLACE.read_text().replace("scratch: /dev/disk/by-partlabel/evmperf", f"scratch: {name}", 1)
    if word:
        text = text.replace(f"scratch: {name}", f"scratch: {name}\n        whole_disk: true")
    file = tmp_path / "a.yaml"
    file.write_text(text)
    assert main(["board", "check", str(file)]) == status
    said = capsys.readouterr().err
    assert (f"emmc.scratch is {name}, a whole disk: name a partition" in said) == bool(status)


def test_a_new_board_is_a_copy_with_its_own_name(tmp_path, capsys):
    words = ["board", "new", "am69-sk", "--like", "am64x", "--into", str(tmp_path)]
    assert main([*words, "--title", "AM69: SK"]) == 0
    file = tmp_path / "am69-sk.yaml"
    assert str(file) in capsys.readouterr().out
    new, old = boards.load(file), boards.load(PLACE)
    assert (new.name, new.options.board.title) == ("am69-sk", "AM69: SK")
    assert (new.features, new.drivers) == (old.features, old.drivers)
    assert {**new.sections, "board": None} == {**old.sections, "board": None}
    assert "am64x" not in file.read_text()
    refused_until_filled_in(file, capsys)
    assert main(words) == ExitStatus.USAGE
    assert "already exists" in capsys.readouterr().err


def refused_until_filled_in(file, capsys):
    assert main(["board", "check", str(file)]) == ExitStatus.USAGE
    assert "is not filled in" in capsys.readouterr().err
    file.write_text(file.read_text().replace("FILL IN", "It has"))
    assert main(["board", "check", str(file)]) == 0


def test_a_new_board_like_none_has_nothing_of_another(tmp_path, capsys):
    assert main(["board", "new", "mine", "--into", str(tmp_path)]) == 0
    file = tmp_path / "mine.yaml"
    assert not re.search(r"\bTI\b|RT-linux|ospi|icssg|K3", file.read_text())
    assert boards.load(file).name == "mine"
    refused_until_filled_in(file, capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a b", "--like", "am64x"], "cannot be called"),
        (["../x", "--like", "am64x"], "cannot be called"),
        (["../x"], "cannot be called"),
        (["am64xx-hsevm", "--like", "j7200"], "already has a board am64xx-hsevm"),
        (["x", "--like", "virtual"], "virtual EVM"),
        (["x", "--like", "am65x"], "no board file am65x"),
    ],
)
def test_a_name_that_does_not_do_is_refused(tmp_path, capsys, words, said):
    assert main(["board", "new", *words, "--into", str(tmp_path)]) == ExitStatus.USAGE
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_schema_knows_every_option_and_only_those(capsys):
    assert main(["board", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    definitions = schema["$defs"]
    found = definitions["Options"]["properties"]
    assert set(found) == {*sections(), *MAPPINGS}
    for name, section in sections().items():
        definition = definitions[found[name]["$ref"].rpartition("/")[2]]
        assert definition["additionalProperties"] is False
        assert set(definition["properties"]) == set(known_options(section))
        for option in definition["properties"].values():
            assert option["description"]
            assert "" not in option.get("enum", ())


def test_the_command_prints_every_option(capsys):
    assert main(["board", "options"]) == 0
    printed = capsys.readouterr().out
    for name, section in sections().items():
        assert f"**`{name}`**" in printed
        assert all(f"`{option}`" in printed for option in known_options(section))


@pytest.mark.skipif(not ENVS.is_dir(), reason="no env files of labs beside this checkout")
def test_options_beside_a_labs_file_are_begun_filled_in_and_taken(tmp_path, capsys):
    lab = str(ENVS / "uboot-strategy.yaml")
    assert main(["board", "new", "rack-1", "--from-labgrid", lab, "--into", str(tmp_path)]) == 0
    file = tmp_path / "rack-1.yaml"
    assert "# emmc: {scratch: FILL IN, device: FILL IN}" in file.read_text()
    text = file.read_text().replace("# emmc: {scratch: FILL IN, device: FILL IN}", "emmc: {scratch: /dev/x9}")
    file.write_text(text)
    capsys.readouterr()
    assert main(["board", "check", lab, "--board", str(file)]) == 0
    assert "board rack-1\n" in capsys.readouterr().out
    board = boards.load(Path(lab), options=file)
    assert board.options.emmc.scratch == "/dev/x9"
    assert "emmc" in board.features
