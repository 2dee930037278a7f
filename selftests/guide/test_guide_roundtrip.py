"""Guides read and written again: every table the same, cell for cell."""

import io

import docutils.core
import pytest
from evmperf_guides import importer, printed

from evmperf.judge.published.releases import published
from evmperf.measure.runs.history import SpoolFolder
from evmperf.model.figures import figures
from evmperf.publish.guide import layout, writer
from selftests.guide.test_guide_import import table, titled
from selftests.instruments import guide_reading
from selftests.instruments.speed.guides import texts
from selftests.support import seeds

REAL = seeds.real("guides", "am*-*.rst")
"""Published guides of which everything is read; guide_reading counts the others."""

EVERYTHING = (142, 1342, 4639)
"""Tables, rows and cells of the five seed guides."""

needs_seeds = seeds.needs("seeds")


def shape(source):
    """Everything about the tables of a guide that a rendering must keep."""
    return [
        (t.section, t.caption, t.caption_style, t.header, [row.cells for row in t.rows])
        for t in source.tables
    ]


def rendered(imported):
    known = {board: figures(results) for board, results in imported.results.items()}
    head = writer.Head(imported.release, imported.os)
    return writer.render(layout.like(printed.of_guide(imported), known), known, head)


def warnings(text):
    stream = io.StringIO()
    settings = {"warning_stream": stream, "report_level": 2, "halt_level": 5}
    docutils.core.publish_doctree(text, settings_overrides=settings)
    return stream.getvalue()


@needs_seeds
def test_all_tables_rows_and_cells_of_the_seeds_are_known():
    imported = [importer.load(file)[0] for file in seeds.files()]
    assert [guide.unknown for guide in imported] == [[]] * len(imported)
    assert sum(guide.unknown_cells for guide in imported) == 0
    tables = [table for guide in imported for table in guide.source.tables]
    rows, cells = sum(len(table.rows) for table in tables), sum(guide.cells for guide in imported)
    assert (len(tables), rows, cells) == EVERYTHING


@needs_seeds
@pytest.mark.parametrize("file", [*seeds.files(), *REAL], ids=lambda file: file.stem[:12])
def test_a_guide_rendered_again_is_identical(file):
    imported = importer.load(file)[0]
    text = rendered(imported)
    assert imported.unknown == []
    assert shape(importer.interpret(text)[0].source) == shape(imported.source)
    assert file in REAL or warnings(text) == ""


@needs_seeds
def test_no_sentence_of_the_seeds_is_in_what_we_write():
    theirs = {
        " ".join(line.split()).lower()
        for file in seeds.files()
        for line in file.read_text().splitlines()
        if len(line.split()) >= 8
        and not line.lstrip().startswith(('"', ":", "|", "+", "-", "..", "netperf", "cyclictest"))
    }
    ours = {" ".join(line.split()).lower() for text in texts().values() for line in text.splitlines()}
    assert theirs & ours == set()


@pytest.mark.parametrize("release", list(texts()))
def test_a_guide_from_baselines_reads_back_the_same(release):
    text = texts()[release]
    imported = importer.interpret(text)[0]
    assert imported.unknown == []
    assert shape(importer.interpret(rendered(imported))[0].source) == shape(imported.source)
    assert warnings(text) == ""


@needs_seeds
def test_baselines_are_what_the_command_makes_of_the_seeds(tmp_path):
    for file in seeds.files():
        importer.store(importer.load(file)[0], tmp_path)
    ours = {entry.run.id: entry.folder for entry in published()}
    made = {entry.run.id: entry.folder for entry in SpoolFolder(tmp_path).runs()}
    assert set(made) == set(ours)
    for run, folder in made.items():
        for name in ("run.json", "results.jsonl"):
            assert (ours[run] / name).read_text() == (folder / name).read_text(), (
                "make baselines/ again: evmperf import-guide SEEDS --into baselines"
            )


GUIDES = seeds.real("guides", "*.rst")
LEAST_SAME = 0.995


@pytest.mark.skipif(not GUIDES, reason="no shared/real/guides beside the checkout")
def test_published_figures_come_back_or_are_refused_with_a_reason():
    said = guide_reading.truth()
    files = (*seeds.files(), *GUIDES)
    counts = [guide_reading.counted(file, said.get(file.name, ("", ""))) for file in files]
    assert [count.wrong for count in counts if count.wrong] == []
    assert not any(count.refused["without a reason"] for count in counts)
    total = sum(count.total for count in counts)
    assert total > 48_000
    assert sum(count.same for count in counts) > LEAST_SAME * total


@pytest.mark.skipif(not GUIDES, reason="no shared/real/guides beside the checkout")
def test_no_cell_of_a_row_without_some_boards_is_read_as_another_board_s():
    counts = [guide_reading.shortened(guide) for file in GUIDES for guide in importer.load(file)]
    assert [wrong for _, wrong in counts if wrong] == []
    assert sum(placed for placed, _ in counts) > 3_000


def test_a_figure_that_comes_back_otherwise_is_wrong(tmp_path, monkeypatch):
    file = tmp_path / "guide.rst"
    file.write_text(titled(table([["add (MB/s)", "1.00"], ["copy (MB/s)", "fast"], ["fly (MB/s)", 2]])))
    count = guide_reading.counted(file)
    assert (count.same, len(count.wrong), count.refused.total()) == (1, 0, 1)
    monkeypatch.setattr("evmperf.publish.guide.writer.cell_text", lambda slot, figure: "9.99")
    assert guide_reading.counted(file).wrong
