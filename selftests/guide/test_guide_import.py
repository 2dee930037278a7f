"""Reading guides: boards, tables and figures, what is reported of the rest, and what is kept. readings.yaml
has guides that contradict themselves, that name no board, or whose rows are short.
"""

import json
import re
from pathlib import Path

import hypothesis
import pytest
import yaml
from evmperf_guides import importer, printed, rows
from hypothesis import strategies as st

from evmperf.commands.cli import main as cli
from evmperf.judge.published import scatter
from evmperf.measure.runs.spool import read_records, read_results, read_run
from evmperf.model.errors import UsageError
from evmperf.model.figures import Key
from evmperf.model.figures import figures as by_key
from evmperf.model.records import UnknownRecord
from evmperf.model.units import Unit
from evmperf.publish.guide import layout
from selftests.instruments.speed.guides import texts

BAR = "=" * 60
TABLE = yaml.safe_load(Path(__file__).with_name("readings.yaml").read_text())
GUIDES = [(about, {**group, **more}) for about, group in TABLE.items() for more in group.get("each", [{}])]


def titled(body, title="Linux 10.01.00 Performance Guide"):
    return f"{BAR}\n {title}\n{BAR}\n\n{body}"


def csv(cells):
    return ",".join(f'"{cell}"' for cell in cells)


def table(
    lines, header=("Benchmarks", "am64xx-hsevm: perf"), caption="", within=("System Benchmarks", "Stream")
):
    """A table below its headings; rows are cells, or a line as it is."""
    headings = "".join(f"{name}\n{mark * 60}\n\n" for name, mark in zip(within, "-^~", strict=False))
    text = "\n".join(f"    {row if isinstance(row, str) else csv(row)}" for row in lines)
    return f"{headings}.. csv-table:: {caption}\n    :header: {csv(header)}\n\n{text}\n\n"


def part(of):
    """The text of a part of a guide: words, or a table."""
    if isinstance(of, str):
        return of
    lines, given = of.get("rows", []), {}
    if "sizes" in of:
        fs, board = of.get("fs", "EXT4"), of.get("evm", "x1-evm")
        titles = (f"Write {fs} Throughput (Mbytes/sec)", f"Write {fs} CPU Load (%)")
        given["header"] = ["Buffer size (bytes)", *(f"{board}: {title}" for title in titles)]
        lines = [[size, "1.00", "2.00"] for size in of["sizes"]]
    elif "boards" in of:
        given["header"] = [
            of["key"],
            *(f"{board}: {title}" for board in of["boards"] for title in of["titles"]),
        ]
    elif "header" in of:
        given["header"] = of["header"]
    lines = [*lines, of["row"]] if "row" in of else lines
    return table(lines, caption=of.get("caption", ""), within=of.get("in", ()), **given)


def text_of(guide):
    """The text of a guide, by its words in the table of guides."""
    before, after = ([of] if isinstance(of := guide.get(key, []), str) else of for key in ("before", "after"))
    own = {"in": ("System Benchmarks", "Stream")} if "rows" in guide and "sizes" not in guide else {}
    mine = [{**own, **guide}] if {"rows", "sizes"} & {*guide} else []
    more = [guide["more"]] if "more" in guide else []
    body = "\n".join(map(part, (*before, *mine, *after, *more)))
    text = titled(body + guide.get("end", ""), guide.get("title", "Linux 10.01.00 Performance Guide"))
    for old, new in guide.get("replace", {}).items():
        assert old in text
        text = text.replace(old, new)
    return text


def known_of(guide):
    """`scatter.history` of boards with the figures that the table of guides says."""

    def history(board, os, without=""):
        known = {
            Key(benchmark, str(case), metric): {(9, n): tuple(figure[:3]) for n in range((*figure, 1, 1)[3])}
            for benchmark, cases in guide.get("history", {}).get(board, {}).items()
            for case, metrics in cases.items()
            for metric, figure in metrics.items()
        }
        if "loads" in guide:
            load = {(n,): ("", "%", one) for n, one in enumerate(guide["loads"].get(board, ()))}
            throughput = {}
            if board in guide.get("same", {}):
                release = (10, 1)
                load[release], throughput[release] = (
                    ("", unit, value)
                    for unit, value in zip(("%", "Mbit/s"), guide["same"][board], strict=True)
                )
            known[Key("eth_udp_egress", "64", "cpu_load")] = load
            known[Key("eth_udp_egress", "64", "throughput")] = throughput
        return known

    return history


STREAM = table([["add (MB/s)", "1.00"]])


@pytest.fixture
def reading(monkeypatch):
    """A function that reads a guide of the table."""

    def read(guide):
        if {"history", "loads"} & {*guide}:
            monkeypatch.setattr(scatter, "history", known_of(guide))
        given = {name: guide.get(name, "") for name in ("release", "os", "board")}
        return importer.interpret(text_of(guide), guide.get("name", "guide.rst"), **given)[0]

    return read


def figures(imported):
    """Figures with their units by board, benchmark, case and metric."""
    return {
        f"{board} {result.benchmark} {result.case} {cell.metric}": f"{cell.mean:g} {cell.unit}"
        for board, results in imported.results.items()
        for result in results
        for cell in result.published
    }


def check_said(problems, wanted):
    """Each of the wanted words is said by a problem."""
    for words in wanted:
        assert any(all(word in problem.reason for word in words) for problem in problems), (words, problems)


@pytest.mark.parametrize(("about", "guide"), GUIDES, ids=[about for about, _ in GUIDES])
def test_a_guide_is_read_as_a_person_does(about, guide, reading):
    if "refused" in guide:
        with pytest.raises(UsageError, match=guide["refused"]):
            reading(guide)
        return
    imported = reading(guide)
    found = figures(imported)
    assert {key: found.get(key, "-") for key in guide.get("read", {})} == guide.get("read", {})
    assert {key: getattr(imported, key) for key in guide.get("is", {})} == guide.get("is", {})
    results = [(board, result) for board, several in imported.results.items() for result in several]
    if "of" in guide:
        assert list(imported.results) == guide["of"]
    if "tables" in guide:
        assert sorted({result.benchmark for _, result in results}) == guide["tables"]
    if "whose" in guide:
        assert sorted(board for board, one in results if one.case == str(guide["case"])) == guide["whose"]
    for section, captions in guide.get("captions", {}).items():
        assert [one.caption for one in imported.source.tables if one.section == (section,)] == captions
    check_said(imported.remarks, guide.get("remarks", ()))
    check_said(imported.unknown, guide.get("unknown", ()))
    assert len(imported.unknown) == len(guide.get("unknown", ())), imported.unknown
    if "line" in guide:
        number = imported.unknown[0].line
        assert guide["line"] in (number, text_of(guide).splitlines()[number - 1].strip())


def test_an_unknown_table_is_kept_as_it_is(tmp_path):
    odd = table([["x", 1.00]], header=("Colour", "am64xx-hsevm: hue"), within=())
    imported = importer.interpret(titled(STREAM + odd))[0]
    (folder,) = importer.store(imported, tmp_path)
    (kept,) = [r for r in read_records(folder) if isinstance(r, UnknownRecord)]
    assert '"Colour","am64xx-hsevm: hue"' in kept.text
    assert len(read_results(folder)) == 1


@pytest.mark.parametrize("directive", ["ifconfig:: CONFIG_part_variant in ('AM64X')", "only:: html"])
def test_what_sphinx_shows_under_a_condition_belongs_to_the_guide(directive):
    head, sign, body = STREAM.partition(".. csv-table::")
    inside = "\n".join(f"    {line}".rstrip() for line in (sign + body).splitlines())
    (imported,) = importer.interpret(titled(f"{head}.. {directive}\n\n{inside}\n"))
    assert figures(imported) == {"am64xx-hsevm stream add perf": "1 MB/s"}


def test_importing_twice_is_importing_once(tmp_path):
    imported = importer.interpret(titled(STREAM))[0]
    first = importer.store(imported, tmp_path)
    before = (first[0] / "results.jsonl").read_bytes()
    assert importer.store(imported, tmp_path) == first
    assert (first[0] / "results.jsonl").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [first[0].name]
    assert read_run(first[0]).kind == "guide"


def test_a_measured_run_is_never_overwritten(tmp_path):
    imported = importer.interpret(titled(STREAM))[0]
    (folder,) = importer.store(imported, tmp_path)
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**run, "kind": "nightly"}))
    with pytest.raises(UsageError, match="holds a measured run"):
        importer.store(imported, tmp_path)


def test_strict_fails_on_anything_unknown(tmp_path, capsys):
    file = tmp_path / "guide.rst"
    file.write_text(titled(table([["add (MB/s)", "fast"]])))
    assert cli.main(["import-guide", str(file)]) == 0
    assert cli.main(["import-guide", str(file), "--strict"]) == 1
    captured = capsys.readouterr()
    assert "1 table, 2 cells, 1 known, 1 unknown" in captured.out
    assert f"{file} line 14: not read: add perf: 'fast'" in captured.err


LONGEST = max(texts().values(), key=len)


@hypothesis.settings(max_examples=40)
@hypothesis.given(data=st.data())
def test_damaged_guides_give_errors_with_lines_only(data):
    begin = data.draw(st.integers(0, len(LONGEST) - 4000))
    text = LONGEST[begin : begin + 4000]
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.text(max_size=8)) + text[at + data.draw(st.integers(0, 40)) :]
    said = "guide line 1: "
    try:
        importer.interpret(titled(text))
    except UsageError as error:
        said = str(error)
    assert re.match(r"guide line \d+: ", said)


CENTS = st.integers(-(10**9), 10**9).map(lambda cents: cents / 100)


@hypothesis.given(st.lists(CENTS, min_size=3, max_size=3).map(sorted), st.integers(0, 2))
def test_a_figure_reads_back_as_it_was_printed(values, decimals):
    low, mean, high = values
    text = rows.figure_text(mean, low, high, decimals)
    cell = rows.figure(text, "m", Unit.SECOND, decimals)
    assert cell.text == ""
    assert rows.figure_text(cell.mean, cell.low, cell.high, decimals) == text


@pytest.mark.parametrize(
    ("text", "mean", "kept"),
    [
        ("205 MB/s", 205.0, "205 MB/s"),
        ("403 KB/s", 0.403, "403 KB/s"),
        ("~11.04", 11.04, "~11.04"),
        ("6", 6.0, "6"),
        ("1.00 [n 20, +1.2 %, 1 outlier]", 1.0, ""),
    ],
)
def test_irregular_cells_keep_their_text(text, mean, kept):
    cell = rows.figure(text, "m", Unit.MEGABYTE_PER_SECOND)
    assert (cell.mean, cell.text) == (pytest.approx(mean), kept)


@pytest.mark.parametrize(
    "text",
    ["fast", "1.0.0", "1 2", "1.00 (min 0.50)", "1.00 (min 2.00, max 3.00)", "-", "nan", "1e3", "5 GHz"],
)
def test_anything_else_is_refused(text):
    with pytest.raises(rows.CellError):
        rows.figure(text, "m", Unit.MEGABYTE_PER_SECOND)


def test_a_unit_in_a_cell_must_be_one_of_its_metric():
    with pytest.raises(rows.CellError, match="measured in us"):
        rows.figure("5 MB/s", "m", Unit.MICROSECOND)


def test_imports_of_two_systems_do_not_replace_each_other(tmp_path):
    for title in ("Linux 9.1 Performance Guide", "RT-linux 9.1 Performance Guide"):
        importer.store(importer.interpret(titled(STREAM, title))[0], tmp_path)
    assert {read_run(path).os for path in tmp_path.iterdir()} == {"Linux", "RT-linux"}


def test_figures_of_an_unknown_system_do_not_replace_those_of_another_file(tmp_path):
    text = titled(STREAM, "Performance Guide")
    importer.store(importer.interpret(text, "one.rst", release="9.1")[0], tmp_path)
    importer.store(importer.interpret(text, "one.rst", release="9.1")[0], tmp_path)
    with pytest.raises(UsageError, match=r"one\.rst.*--os"):
        importer.store(importer.interpret(text, "two.rst", release="9.1")[0], tmp_path)


def test_a_second_guide_in_one_file_is_a_guide_of_its_own(tmp_path, capsys):
    second = titled(STREAM.replace("1.0", "2.0"), "RT-linux 9.01 Performance Guide")
    file = tmp_path / "both.rst"
    file.write_text(titled(STREAM, "Linux 9.01 Performance Guide") + "\n" + second)
    one, two = importer.load(file)
    place = "am64xx-hsevm stream add perf"
    assert [(g.os, figures(g)[place]) for g in (one, two)] == [("Linux", "1 MB/s"), ("RT-linux", "2 MB/s")]
    (result,) = two.results["am64xx-hsevm"]
    lines = file.read_text().splitlines()
    assert "2.0" in lines[result.published[0].line - 1]
    assert cli.main(["import-guide", str(file), "--into", str(tmp_path / "runs")]) == 0
    assert len(list((tmp_path / "runs").iterdir())) == 2
    assert "RT-linux 9.01" in capsys.readouterr().out


def test_a_layout_of_a_table_of_no_board_has_a_place_for_its_figures(reading):
    guide = next(one for about, one in GUIDES if about.startswith("a table of no board"))
    read, empty = reading(guide), reading({**guide, "rows": [[name, ""] for name, _ in guide["rows"]]})
    known = {board: by_key(results) for board, results in read.results.items()}
    known["am64xx-hsevm"] = {}
    (slot,) = (slot for _, slot in layout.like(printed.of_guide(empty), known).slots())
    assert [column.board for column in slot.columns] == guide["of"]
    assert [column.printed for column in slot.columns] == ["perf"]


def test_a_short_row_of_very_many_boards_is_refused_at_once(reading):
    """2^30 sets of boards might be what it has."""
    (about,) = (about for about in TABLE if about.startswith("a short row is read where loads"))
    boards = [f"board{number}-evm" for number in range(30)]
    imported = reading(
        {**TABLE[about], "boards": boards, "rows": [[128, *[1.0] * 60]], "row": [64, *[1.0] * 30]}
    )
    assert not [one for several in imported.results.values() for one in several if one.case == "64"]
    check_said(imported.unknown, [["the row has 31 cells, fewer than the 61 of its header"]])
