"""What a board file says there is to hold, and what it fails to say."""

import pytest

from evmperf.lab.keeping.wanted import Wanted, placement
from evmperf.model.errors import UsageError
from selftests.support.seeds import place

ENVS = place("real/labgrid-envs")


@pytest.fixture
def file(tmp_path):
    def write(resources):
        path = tmp_path / "board.yaml"
        path.write_text(f"targets: {{main: {{resources: {resources}}}}}")
        return path

    return write


def test_a_missing_word_is_named_with_its_key(file):
    with pytest.raises(UsageError, match=r"board.yaml: .*RemotePlace.name"):
        placement(file("{RemotePlace: {}}"))


@pytest.mark.parametrize("env", sorted(ENVS.glob("*.yaml")), ids=lambda file: file.stem)
def test_a_board_of_any_labs_file_can_be_held(env, monkeypatch):
    monkeypatch.setenv("LG_PLACE", "board-7")
    wanted = placement(env)
    assert wanted.coordinator or wanted.devices


def test_the_only_target_may_have_any_name(file, tmp_path):
    of_main = placement(file("{RawSerialPort: {port: /dev/ttyUSB0}}"))
    other = tmp_path / "other.yaml"
    other.write_text("targets: {beagle: {resources: {RawSerialPort: {port: /dev/ttyUSB0}}}}")
    assert placement(other).devices == of_main.devices


def test_two_runs_of_a_board_without_resources_are_of_one_board(file):
    """As of Labgrid's QEMUDriver: the file is what they share."""
    assert placement(file("{}")).devices == placement(file("{}")).devices != ()


def test_a_place_is_held_at_its_coordinator(file, monkeypatch):
    monkeypatch.delenv("LG_COORDINATOR", raising=False)
    path = file("{RemotePlace: {name: $LG_PLACE}}")
    assert placement(path, "lab", place="desk") == Wanted("desk", "lab:20408", file=str(path))
