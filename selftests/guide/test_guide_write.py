"""Writing guides: from measured runs with what they were measured under, through Sphinx; the declarations."""

import re

import numpy as np
import pytest
from evmperf_guides import importer, match
from msgspec import structs
from msgspec.structs import replace

from evmperf.benchmarks import catalogue
from evmperf.commands.app import why
from evmperf.commands.cli import main as cli
from evmperf.commands.cli.main import main
from evmperf.judge.published.declared import FOLDER, load, outline, tables
from evmperf.judge.published.releases import published
from evmperf.measure.runs.spool import read_results, read_run
from evmperf.model.anytime import half_width
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.results import Sample
from evmperf.model.state import State
from evmperf.publish.guide import conditions
from selftests.guide.test_guide_import import STREAM, titled
from selftests.support import runs, spools


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
        marks = (table.keys, tuple(sorted(table.columns)), tuple(sorted(match.about_of(table).items())))
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
        match.about_of(table)


def test_what_the_benchmark_says_is_not_said_again(tmp_path):
    file = tmp_path / "emmc_ext4.yaml"
    file.write_text("title: EMMC EXT4\nabout: {}\nkeys: [K]\ncolumns: [write_throughput]\n")
    with pytest.raises(UsageError, match=r"title .*emmc_ext4$"):
        load(file)


def test_a_virtual_run_becomes_a_guide_that_sphinx_accepts(results, tmp_path):
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
    cells = [cell for result in imported.results["virtual-evm"] for cell in result.published]
    assert all(cell.low is not None and cell.low <= cell.mean <= (cell.high or 0) for cell in cells)


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


def test_the_change_to_the_release_before_is_shown(capsys):
    assert cli.main(["guide", "--release", "11.01", "--from", "baselines", "--with=delta"]) == 0
    text = capsys.readouterr().out
    assert re.search(r'"[^"]+ \[-[0-9.]+ % worse\]"', text)
    assert re.search(r'"[^"]+ \[[+-][0-9.]+ % within its range\]"', text)
    for said in ("became better by", "became worse by", "are new", "are missing", "are doubtful"):
        assert re.search(rf"[1-9][0-9]* figures [^(]*{said}", text)
    # A tenth of what all other releases have: no change is told of it.
    assert '"17.29 (min 16.89, max 17.67)"' in text


def test_pages_are_not_built_among_their_source(tmp_path, capsys):
    guide = ["guide", "--from", "baselines", "--release", "11.00", "--os", "Linux"]
    there = tmp_path / "public"
    assert cli.main([*guide, "-o", str(there / "guide.rst"), "--html", str(there)]) == ExitStatus.USAGE
    assert "build in another folder" in capsys.readouterr().err
    assert cli.main([*guide, "-o", str(there / "source/index.rst"), "--html", str(there)]) == 0
    assert "<table" in (there / "index.html").read_text()


STRANGE = '.. csv-table:: Odd\n    :header: "Colour","am64xx-hsevm: Hue"\n\n    "red","4711.00"\n\n'


def measured(folder, profile, **facts):
    found = list(runs.results(np.random.default_rng(1), profile=profile, count=1))
    runs.write(folder, found, **facts)
    if profile != "full":
        (file,) = folder.glob("*/run.json")
        file.write_text(file.read_text().replace('"full"', f'"{profile}"'))


def rendered(capsys, *arguments):
    status = cli.main(["guide", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_published_figures_are_not_called_measured(capsys):
    _, text, _ = rendered(capsys, "--release", "11.01", "--from", "baselines")
    assert "not measured by evmperf: am62lxx_evm-fs." in text
    assert "Measured by evmperf" not in text
    assert "pytest --lg-env" not in text


def test_a_guide_of_quick_runs_states_their_own_parameters(tmp_path, capsys):
    measured(tmp_path, "quick")
    _, text, _ = rendered(capsys, "--release", "12.00", "--from", tmp_path)
    assert "evmperf with the quick profile" in text
    assert ".. csv-table:: EMMC RAW FIO 1G (quick profile)" in text
    assert "quick profile: size 16m (published: 1g), runtime_s 3 (published: 60)" in text
    assert "(1 boot cycles)" in text
    assert "20 boot cycles" not in text
    assert "of 100 MB" not in text
    imported = importer.interpret(text)[0]
    assert imported.unknown == []
    assert {r.profile for results in imported.results.values() for r in results} == {"quick"}


def test_a_guide_says_how_well_a_repeated_mean_is_known(tmp_path, capsys):
    found = runs.results(np.random.default_rng(1), benchmarks=("emmc_ext4",), count=6)
    runs.write(tmp_path, [replace(r, conditions={"repeat": "6 rounds"}) for r in found])
    _, text, _ = rendered(capsys, "--release", "12.00", "--from", tmp_path)
    (line,) = [line for line in text.splitlines() if "rounds" in line]
    values = [100 * (1 + 0.001 * n) for n in range(6)]
    # They are in one proportion to each other in all cells: 100, 100.1 and so on.
    assert line == f"- am64xx-hsevm: 6 rounds, means within ±{half_width(values):.1%} (95 %)"


def test_a_guide_of_full_runs_says_nothing_of_other_parameters(tmp_path, capsys):
    measured(tmp_path, "full")
    _, text, _ = rendered(capsys, "--release", "12.00", "--from", tmp_path)
    assert "Measured by evmperf: am64xx-hsevm." in text
    assert "quick" not in text


def like(tmp_path, body):
    file = tmp_path / "like.rst"
    file.write_text(titled(body))
    return file


def test_a_table_that_is_not_known_is_left_out_and_said(tmp_path, capsys):
    measured(tmp_path / "results", "full")
    layout = like(tmp_path, STREAM + STRANGE)
    arguments = ("--release", "12.00", "--from", tmp_path / "results", "--like", layout)
    status, text, said = rendered(capsys, *arguments)
    assert status == 1
    assert "4711" not in text
    assert "line 16 (Odd)" in said
    assert "no figures for: stream" in said


def test_rows_that_the_layout_lacks_follow_in_their_table(tmp_path, capsys):
    measured(tmp_path / "results", "full")
    body = (
        "EMMC Driver\n-----------\n\nEMMC EXT4\n^^^^^^^^^\n\n.. csv-table:: EMMC EXT4\n"
        '    :header: "Buffer size (bytes)","am64xx-hsevm: Write EXT4 Throughput (Mbytes/sec)"\n\n'
        '    "262144","1.00"\n'
    )
    arguments = ("--release", "12.00", "--from", tmp_path / "results")
    status, text, _ = rendered(capsys, *arguments, "--like", like(tmp_path, body))
    assert status == 0
    rows = {r.case for r in importer.interpret(text)[0].results["am64xx-hsevm"] if r.benchmark == "emmc_ext4"}
    assert rows == {"102400", "262144", "524288", "1048576", "5242880"}


BOARD, RELEASE = "j7200-evm", "12.34"
WELL = State(
    shown={"queue.scheduler": "[none] bfq", "mmc.ios.timing_spec": "10 (mmc HS400)"},
    bus="mmc HS400",
    shares={"read_throughput": 0.785},
)
FACTS = {"kernel": "6.12.17", "governor": "performance", "serial_number": "S3CRET-0042"}


def a_run(folder, number, value, state, **facts):
    run = spools.a_run(
        number, board=BOARD, release=RELEASE, profile="full", facts=FACTS | facts, place="desk-77"
    )
    sample = Sample("read_throughput", value, "MB/s", 0, run.started_ns)
    words = {"benchmark": "emmc_ext4_fio_1g", "case": "1m", "tools": {"fio": "3.36"}, "state": state}
    return spools.write(
        folder, run, [spools.a_result(run, samples=(sample,), conditions={"medium": "m"}, **words)]
    )


@pytest.fixture
def guide(tmp_path):
    a_run(tmp_path / "well", 0, 314.0, WELL)
    file = tmp_path / "guide.rst"
    assert main(["guide", "--release", RELEASE, "--from", str(tmp_path / "well"), "-o", str(file)]) == 0
    return file


def test_a_guide_is_read_back_with_what_it_was_measured_under(guide, tmp_path):
    assert main(["import-guide", str(guide), "--into", str(tmp_path / "read")]) == 0
    (folder,) = (tmp_path / "read").iterdir()
    run, (result,) = read_run(folder), read_results(folder)
    assert (run.facts.kernel, result.state) == ("6.12.17", WELL)
    assert (result.tools, result.conditions) == ({"fio": "3.36"}, {"medium": "m"})
    assert result.published[0].mean == 314.0


def test_no_secret_of_the_lab_is_in_it(guide):
    text = conditions.beside(guide).read_text()
    assert "S3CRET" not in text
    assert "desk-77" not in text


def test_why_and_explain_work_against_a_guide_of_one_s_own(guide, tmp_path, capsys):
    bad = State(shown={**WELL.shown, "queue.scheduler": "none [bfq]"})
    folder = a_run(tmp_path / "results", 1, 150.0, bad, kernel="6.12.99")
    (answer,) = why.explain(folder, against=f"{why.GUIDE_FILE}{guide}").answers
    assert answer.causes[0].rule == "queue.scheduler"
    assert (answer.theirs, round(answer.ours)) == (314.0, 150)
    assert main(["import-guide", str(guide), "--into", str(tmp_path / "results")]) == 0
    capsys.readouterr()
    there = importer.run_of(importer.load(guide)[0], BOARD).id
    main(["compare", "--facts", there, folder.name, "--results", str(tmp_path / "results")])
    assert "6.12.99" in capsys.readouterr().out


def test_conditions_of_another_text_are_not_used(guide):
    guide.write_text(guide.read_text().replace("314.00", "315.00"))
    imported = importer.load(guide)[0]
    assert imported.conditions is None
    assert any("does not fit the text" in remark.reason for remark in imported.remarks)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "x", "guide": "", "boards": {}}', "\xff"])
def test_a_file_that_holds_no_conditions_costs_no_figure(guide, text):
    conditions.beside(guide).write_text(text, "latin-1")
    imported = importer.load(guide)[0]
    assert imported.results[BOARD][0].published[0].mean == 314.0
    assert any("not used" in remark.reason for remark in imported.remarks)


def test_the_page_folds_them_out(tmp_path):
    a_run(tmp_path / "well", 0, 314.0, WELL, governor="<b>odd</b>")
    words = ["guide", "--release", RELEASE, "--from", str(tmp_path / "well")]
    assert main([*words, "--html", str(tmp_path / "page")]) == 0
    text = (tmp_path / "page/guide.html").read_text()
    assert f"<summary>Conditions on {BOARD}</summary>" in text
    assert "<dt>share of the limit</dt><dd>78% to 78% of mmc HS400</dd>" in text
    assert "fio 3.36" in text
    assert "<b>odd" not in text
