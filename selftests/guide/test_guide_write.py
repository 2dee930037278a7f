"""Writing guides: from measured runs, through Sphinx, and what the declarations must say."""

import re

import numpy as np
import pytest
from evmperf_guides import importer, meaning
from msgspec import structs

from evmperf.benchmarks import catalogue
from evmperf.commands.cli import main as cli
from evmperf.judge.published.declared import FOLDER, load, outline, tables
from evmperf.judge.published.releases import published
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from selftests.support import runs


@pytest.fixture
def results(tmp_path):
    found = list(runs.results(np.random.default_rng(1), count=3))
    found[0] = runs.refused(found[0])
    folder = tmp_path / "results"
    runs.write(folder, found, board="virtual-evm", virtual=True)
    return folder


def test_every_benchmark_of_the_catalogue_has_a_column_for_what_it_requires():
    for name, benchmark in catalogue.benchmarks().items():
        table = tables()[name]
        assert (table.title, table.section) == (benchmark.title, benchmark.section)
        for case in benchmark.cases("full"):
            assert table.knows(case.label)
            for metric in benchmark.metrics_of(case):
                if metric.required:
                    assert table.header_of(metric.name), f"{name} has no column {metric.name}"
            if table.units_in_labels:
                assert table.row_unit(case.label), f"{name}: no spelling of {case.label}'s unit"


def test_published_cases_metrics_and_units_are_the_catalogue_s():
    for entry in published():
        for result in entry.results():
            benchmark = catalogue.benchmarks().get(result.benchmark)
            if benchmark is None:
                continue
            cases = {case.label: case for case in benchmark.cases("full")}
            assert result.case in cases, f"{result.benchmark} has no case {result.case}"
            for cell in result.published:
                metric = benchmark.metric(cell.metric, cases[result.case])
                assert cell.unit == str(metric.unit)


def test_every_declaration_knows_its_metrics():
    for name, table in tables().items():
        case = next(iter(table.cases), "1")
        for metric in table.columns:
            assert table.metric(case, metric.replace("{n}", "0")), f"{name} {metric}"
    assert set(outline().order) == {path.stem for path in FOLDER.glob("*.yaml")}
    assert list(tables())[: len(outline().order)] == list(outline().order)


def test_no_two_tables_are_told_apart_by_nothing():
    seen = {}
    for name, table in tables().items():
        marks = (table.keys, tuple(sorted(table.columns)), tuple(sorted(meaning.about(table).items())))
        rows = (table.cases, table.more_rows)
        assert seen.setdefault((*marks, rows), name) == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title: Twice\nabout: {device: emmc}\nkeys: [K]\ncolumns: {x: [X]}\n", "section"),
        ("like: nothing\ntitle: T\n", "no table 'nothing'"),
        (
            "title: T\nsection: [S]\nabout: {}\nkeys: [K]\ncolumns: {x: [X]}\n"
            "metrics: {x: [parsecs, higher]}\n",
            "unknown word 'parsecs'",
        ),
        (
            "title: T\nsection: [S]\nabout: {}\nkeys: [K]\ncolumns: {x: [X]}\nmetrics: {x: [MB/s, faster]}\n",
            "unknown word 'faster'",
        ),
    ],
)
def test_a_table_file_with_a_mistake_is_named_with_it(text, said, tmp_path):
    file = tmp_path / "new_table.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=re.escape(said)) as caught:
        load(file)
    assert str(file) in str(caught.value)


def test_a_word_that_nobody_knows_is_named_with_its_table():
    table = structs.replace(tables()["emmc_ext4"], about={"device": "floppy"})
    with pytest.raises(UsageError, match=r"emmc_ext4\.yaml: about: .* device: floppy"):
        meaning.about(table)


def test_what_the_benchmark_says_is_not_said_again(tmp_path):
    file = tmp_path / "emmc_ext4.yaml"
    file.write_text("title: EMMC EXT4\nabout: {}\nkeys: [K]\ncolumns: [write_throughput]\n")
    with pytest.raises(UsageError, match=r"title .*emmc_ext4$"):
        load(file)


def test_a_virtual_run_becomes_a_guide_that_sphinx_accepts(results, tmp_path, capsys):
    target = tmp_path / "html"
    command = ["guide", "--release", "12.00", "--from", str(results), "--html", str(target)]
    assert cli.main([*command, "--with", "counts,outliers,delta"]) == 0
    page = (target / "guide.html").read_text()
    assert "Linux 12.00 Performance Guide" in page
    assert "virtual-evm: Read Throughput (Kbytes/sec)" in page
    assert "n 3" in page
    assert "partial: 1 refused" in page
    imported = importer.load(target / "source" / "guide.rst")[0]
    assert imported.unknown == []


def test_figures_are_rounded_half_up_and_bounds_shown_where_there_are_several(results, capsys):
    assert cli.main(["guide", "--release", "12.00", "--from", str(results)]) == 0
    text = capsys.readouterr().out
    imported = importer.interpret(text)[0]
    cells = [c for r in imported.results["virtual-evm"] for c in r.published]
    assert cells
    assert all(c.low is not None and c.low <= c.mean <= (c.high or 0) for c in cells)


def test_measured_runs_in_the_layout_of_a_given_guide(results, tmp_path, capsys):
    layout = tmp_path / "like.rst"
    assert cli.main(["guide", "--release", "11.01", "--from", "baselines", "-o", str(layout)]) == 0
    command = ["guide", "--release", "12.00", "--from", str(results), "--like", str(layout)]
    assert cli.main(command) == 0
    imported = importer.interpret(capsys.readouterr().out)[0]
    assert set(imported.results) == {"virtual-evm"}
    assert {r.benchmark for r in imported.results["virtual-evm"]} == set(runs.BENCHMARKS)


def test_virtual_and_real_boards_never_share_a_guide(results, capsys):
    runs.write(results, runs.results(np.random.default_rng(2)))
    assert cli.main(["guide", "--release", "12.00", "--from", str(results)]) == 0
    assert "virtual-evm" not in capsys.readouterr().out
    both = ["--board", "virtual-evm", "--board", "am64xx-hsevm"]
    assert cli.main(["guide", "--release", "12.00", "--from", str(results), *both]) == ExitStatus.USAGE
    assert "never share a guide" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [(["3.1"], "11.01.16.13 Linux"), (["11.01", "--with", "count"], "'count' is not one of counts, ")],
)
def test_a_word_that_is_not_there_names_those_that_are(capsys, words, said):
    assert cli.main(["guide", "--from", "baselines", "--release", *words]) == ExitStatus.USAGE
    assert said in capsys.readouterr().err


def test_the_change_to_the_release_before_is_shown(capsys):
    assert cli.main(["guide", "--release", "11.01", "--from", "baselines", "--with=delta"]) == 0
    text = capsys.readouterr().out
    assert re.search(r'"[^"]+ \[-[0-9.]+ % worse\]"', text)
    assert re.search(r'"[^"]+ \[[+-][0-9.]+ % within its range\]"', text)
    for said in ("became better by", "became worse by", "are new", "are missing", "are doubtful"):
        assert re.search(rf"[1-9][0-9]* figures [^(]*{said}", text)
    # A tenth of what all other releases have: no change is told of it.
    assert '"17.29 (min 16.89, max 17.67)"' in text


def test_newest_is_each_boards_last_release(capsys):
    arguments = ["guide", "--from", "baselines", "--board", "am62lxx_evm-fs"]
    assert cli.main([*arguments, "--release", "newest"]) == 0
    newest = capsys.readouterr().out
    assert cli.main([*arguments, "--release", "11.01"]) == 0
    assert newest == capsys.readouterr().out


def test_pages_are_not_built_among_their_source(tmp_path, capsys):
    guide = ["guide", "--from", "baselines", "--release", "11.00", "--os", "Linux"]
    there = tmp_path / "public"
    assert cli.main([*guide, "-o", str(there / "guide.rst"), "--html", str(there)]) == ExitStatus.USAGE
    assert "build in another folder" in capsys.readouterr().err
    assert cli.main([*guide, "-o", str(there / "source/index.rst"), "--html", str(there)]) == 0
    assert "<table" in (there / "index.html").read_text()
