"""`evmperf board`: what a file can do, new files, and those of the boards with published figures."""

import json
import re
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from evmperf.benchmarks.catalogue import benchmarks
from evmperf.boards import board as boards
from evmperf.boards.options import MAPPINGS
from evmperf.boards.vocabulary import known_options, sections
from evmperf.commands.cli import main as cli
from evmperf.commands.cli.main import main
from evmperf.judge.published import identity, record
from evmperf.lab.desk import boardfile
from evmperf.lab.desk.identity import BoardIdentity
from evmperf.model.exits import ExitStatus
from selftests.support.seeds import place

ROOT = Path(__file__).parents[2]
PLACE = boards.ENV_DIR / "am64x.yaml"
LOCAL = boards.ENV_DIR / "virtual.yaml"
POWER = "      NetworkPowerDriver:\n        delay: 0.0\n"


@pytest.mark.parametrize("file", sorted(boards.ENV_DIR.glob("*.yaml")), ids=lambda file: file.stem)
def test_the_files_that_come_with_evmperf_have_no_mistake(file, capsys):
    assert main(["board", "check", str(file)]) == 0
    said = capsys.readouterr()
    assert "rows can be measured" in said.out
    assert said.err == ""


def test_the_file_of_the_first_page_has_no_mistake(tmp_path, capsys):
    page = (ROOT / "README.md").read_text()
    block = re.search(r"^    imports:.*?^$", page, re.M | re.S)[0]
    (tmp_path / "mine.yaml").write_text(textwrap.dedent(block))
    assert main(["board", "check", str(tmp_path / "mine.yaml")]) == 0, capsys.readouterr().err


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


REAL = {file.stem: boards.load(file) for file in boards.files().values() if "virtual" not in file.stem}
BEFORE_K3 = ("am335x", "am437x", "am57x", "am574x-idk", "k2g", "omapl138-lcdk")
SAME_TREE = {"am654x-idk": "its device tree is that of the EVM, with an overlay"}
"""Boards that a desk cannot tell from another by what they call themselves."""


@pytest.mark.parametrize("name", sorted(record.boards(record.entries())))
def test_a_board_of_the_record_has_a_file(name):
    assert name in {identity.board(board.name) for board in REAL.values()}


@pytest.mark.parametrize("stem", sorted(REAL))
def test_a_desk_knows_the_board(stem):
    compatible = REAL[stem].options.board.compatible
    assert bool(compatible) == (stem not in SAME_TREE)
    if compatible:
        found = boardfile.fitting(BoardIdentity(compatible=(compatible, "ti,another")))
        assert found
        assert found.stem == stem


def test_no_two_files_are_of_one_board():
    names = Counter(identity.board(board.name) for board in REAL.values())
    assert set(names) <= identity.names()
    assert set(names.values()) == {1}


@pytest.mark.parametrize("stem", sorted(REAL))
def test_only_boards_with_loaders_of_k3_claim_them(stem):
    (name,) = (name for name in REAL[stem].drivers if name.endswith("BootStrategy"))
    assert (name == "BootStrategy") == (stem in BEFORE_K3)
    if name == "BootStrategy":  # their card is the first device of U-Boot, as of Linux
        assert REAL[stem].options.mmcsd.uboot_device == 0
        assert "sd" in REAL[stem].strategy["media"]


@pytest.mark.parametrize("stem", ["am62x-sip-sk", "am335x", "k2g", "j742s2"])
def test_a_file_finds_its_published_figures(stem, capsys):
    assert cli.main(["published", stem]) == 0
    assert re.search(r"^\d+[._]\d+", capsys.readouterr().out, re.M)
