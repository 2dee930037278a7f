"""Teaching a table that is not known: what it is near to, and a draft that reads it."""

import re

import pytest

from evmperf.commands.cli import main as cli
from evmperf.guides.published import declared
from evmperf.guides.reading import importer, teach
from selftests.guide.test_guide_import import HEAD

SENSOR = """\
Sensor Preview
--------------

.. csv-table:: Sensor Preview
    :header: "Resolution","Pipeline","x1-evm: Frame Rate (fps)","x1-evm: Load (%)","x1-evm: Sensor"

    "1920x1080","direct","30.01","4.20","imx219"
    "640x480","scaled","29.97","2.10","imx219"
"""
DRIVE = """\
Floppy Driver
-------------

.. csv-table:: Floppy EXT4
    :header: "Buffer size (bytes)","x1-evm: Write EXT4 Throughput (Mbytes/sec)"

    "102400","1.00"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The tables' folder, as a copy that may be written to."""
    copy = tmp_path / "tables"
    copy.mkdir()
    for file in declared.FOLDER.glob("*.yaml"):
        (copy / file.name).write_bytes(file.read_bytes())
    (tmp_path / "outline.yaml").write_bytes((declared.FOLDER.parent / "outline.yaml").read_bytes())
    monkeypatch.setattr(declared, "FOLDER", copy)
    declared.tables.cache_clear()
    yield copy
    declared.tables.cache_clear()


def test_an_unknown_table_is_told_with_its_nearest_and_the_file(tmp_path, capsys):
    file = tmp_path / "guide.rst"
    file.write_text(HEAD + SENSOR)
    assert cli.main(["import-guide", str(file)]) == 0
    said = capsys.readouterr().err
    assert "line 8: table not known" in said
    assert re.search(r"nearest is sensor_capture \(.*tables/sensor_capture\.yaml\): ", said)


@pytest.mark.parametrize("body", [SENSOR, DRIVE])
def test_what_is_taught_is_read_cell_for_cell(body, folder):
    before = importer.interpret(HEAD + body)
    (table,) = before.unread
    drafted = teach.write(table, folder)
    assert drafted
    assert drafted.parent == folder
    declared.tables.cache_clear()
    after = importer.interpret(HEAD + body)
    assert after.unknown == []
    assert [(r.case, len(r.published)) for r in after.results["x1-evm"]] == [
        (row.case, len(row.figures)) for row in after.matches[0].rows
    ]
    assert teach.write(table, folder) is None, "a draft is written once"


def test_words_are_kept_beside_the_figures(folder):
    (table,) = importer.interpret(HEAD + SENSOR).unread
    teach.write(table, folder)
    declared.tables.cache_clear()
    first = importer.interpret(HEAD + SENSOR).results["x1-evm"][0]
    assert first.case == "1920x1080|direct"
    assert dict(first.conditions) == {"sensor": "imx219"}
    assert {f.metric: (f.mean, f.unit) for f in first.published} == {
        "frame_rate": (30.01, "1/s"),
        "load": (4.2, "%"),
    }
