"""What a board file says there is to hold, and what it fails to say."""

import pytest

from evmperf.lab.keeping.wanted import Wanted, placement
from evmperf.model.errors import UsageError


@pytest.fixture
def file(tmp_path):
    def write(resources):
        path = tmp_path / "board.yaml"
        path.write_text(f"targets: {{main: {{resources: {resources}}}}}")
        return path

    return write


@pytest.mark.parametrize(
    ("resources", "key"), [("{RemotePlace: {}}", "RemotePlace.name"), ("{}", "RemotePlace")]
)
def test_a_missing_word_is_named_with_its_key(file, resources, key):
    with pytest.raises(UsageError, match=rf"board.yaml: .*{key}"):
        placement(file(resources))


def test_a_place_is_held_at_its_coordinator(file, monkeypatch):
    monkeypatch.delenv("LG_COORDINATOR", raising=False)
    path = file("{RemotePlace: {name: $LG_PLACE}}")
    assert placement(path, "lab", place="desk") == Wanted("desk", "lab:20408", file=str(path))
