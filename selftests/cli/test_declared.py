"""Each command that a module declares is in the table of commands, and describes itself."""

import importlib
import re
from pathlib import Path

import pytest

from evmperf.commands.cli import arguments, main
from evmperf.model.exits import ExitStatus

for name in {module for group in main._COMMANDS.values() for module, _ in group.values()}:
    importlib.import_module(f"evmperf.commands.cli.{name}")


@pytest.mark.parametrize("command", [name for group in main._COMMANDS.values() for name in group])
def test_a_command_describes_itself(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: evmperf {command}" in capsys.readouterr().out


@pytest.mark.parametrize("command", sorted(arguments._COMMANDS))
def test_a_command_has_a_description(command):
    assert arguments._COMMANDS[command].run.__doc__


def test_every_declared_command_is_in_the_table():
    table = {(name, module) for group in main._COMMANDS.values() for name, (module, _) in group.items()}
    declared = {
        (name.partition(" ")[0], one.run.__module__.rpartition(".")[2])
        for name, one in arguments._COMMANDS.items()
        if one.run.__module__.startswith("evmperf.")  # not of another package
    }
    assert declared == table


@pytest.mark.parametrize("value", ["", "lava-native"])
def test_an_option_has_the_value_of_its_variable(monkeypatch, value):
    monkeypatch.setenv("EVMPERF_OVER", value)
    parser = main._parser("gitlab")
    assert parser.parse_args(["gitlab", "pipeline"]).over == (value or "labgrid")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("ab virtual --budget soon", "soon"),
        ("ab virtual --boots 0", "'0' is not a whole number from 1 on"),
        ("ab virtual --within 200", "'200' is not a share: write 2% or 0.02"),
        ("ab virtual --within 5,0", "'5,0' is not a share"),
        ("check --level 2", "'2' is not a share"),
    ],
)
def test_a_wrong_value_is_a_wrong_call_that_says_what_to_write(words, told, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(words.split())
    assert ended.value.code == ExitStatus.USAGE
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("share", ["2%", "2 %", "0.02"])
def test_a_share_is_said_in_either_way(share):
    assert main._parser("ab").parse_args(["ab", "virtual", "--within", share]).within == 0.02


def test_no_default_is_typed_into_a_help_text():
    """A number behind `default` is formatted from the constant, or by argparse."""
    typed = re.compile(r"help=\(?\s*\"[^\"]*default:? [a-z:]*\d")
    folder = Path(arguments.__file__).parent
    found = [file.name for file in folder.glob("*.py") if typed.search(file.read_text())]
    assert found == []
