"""What the commands' YAML files declare is what the commands are."""

import importlib
from pathlib import Path

import pytest

from evmperf.boards import yamlfile
from evmperf.commands.cli import arguments, main

MODULES = {module for group in main._COMMANDS.values() for module, _ in group.values()}


@pytest.mark.parametrize("command", [name for group in main._COMMANDS.values() for name in group])
def test_a_command_describes_itself(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main([command, "--help"])
    assert ended.value.code == 0
    assert f"usage: evmperf {command}" in capsys.readouterr().out


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_file_declares_the_commands_of_its_module(module):
    loaded = importlib.import_module(f"evmperf.commands.cli.{module}")
    done = {name for name, run in arguments._RUNS.items() if run.__module__ == loaded.__name__}
    declared = yamlfile.own(f"commands/cli/{module}.yaml")
    shared = declared.pop("shared", {})
    assert {name for name, said in declared.items() if "group" not in said} == done
    text = (Path(main.__file__).parent / f"{module}.yaml").read_text()
    assert [name for name in shared if f"- {name}\n" not in text] == []


def test_the_files_are_of_modules():
    files = {file.stem for file in Path(main.__file__).parent.glob("*.yaml")}
    assert files == MODULES | {"pytest", "shared"}
