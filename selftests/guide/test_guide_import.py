"""Reading guides: what is known, what is reported, and by which line."""

import json
import re

import hypothesis
import pytest
from evmperf_guides import importer
from hypothesis import strategies as st

from evmperf.commands.cli import main as cli
from evmperf.measure.runs.spool import read_records, read_results, read_run
from evmperf.model.errors import UsageError
from evmperf.model.records import UnknownRecord
from selftests.instruments.speed.guides import texts

BAR = "=" * 35
HEAD = f"{BAR}\n Linux 10.01.00 Performance Guide\n{BAR}\n\n"


def guide(body):
    return importer.interpret(HEAD + body)[0]


def table(rows, header='"Benchmarks","am64xx-hsevm: perf"', caption="", section="Stream"):
    lines = "\n".join(f"    {row}" for row in rows)
    return (
        f"System Benchmarks\n-----------------\n\n{section}\n{'^' * len(section)}\n\n"
        f".. csv-table:: {caption}\n    :header: {header}\n\n{lines}\n"
    )


def cells(imported, board="am64xx-hsevm"):
    return {
        (r.benchmark, r.case, c.metric): (c.mean, c.low, c.high, c.unit)
        for r in imported.results[board]
        for c in r.published
    }


def only_problem(imported):
    (problem,) = imported.unknown
    return problem


def test_two_tables_of_one_section_are_told_by_their_captions():
    rows = ['"core (workloads/)","0.42"']
    one = guide(table(rows, caption="CoreMarkPro Benchmarks", section="CoreMarkPro"))
    two = guide(table(rows, caption="CoreMarkProTwoCore Benchmarks", section="CoreMarkPro"))
    assert [next(iter(cells(g)))[0] for g in (one, two)] == ["coremarkpro", "coremarkpro_two_core"]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (['"add (MB/s)","fast"'], "'fast' is not a figure"),
        (['"add (GB/s)","1.00"'], "unit 'GB/s' of add is unknown"),
        (['"add (MB/s)","1.00","2.00"'], "more than the 2 of its header"),
        (['"add (MB/s)","5.00 (min 6.00, max 7.00)"'], "not between its bounds"),
        (['"divide (MB/s)","1.00"'], "stream has no row"),
    ],
)
def test_an_unknown_cell_is_reported_and_the_others_are_kept(rows, reason):
    imported = guide(table([*rows, '"copy (MB/s)","2.00"']))
    problem = only_problem(imported)
    assert reason in problem.reason
    assert (HEAD + table(rows)).splitlines()[problem.line - 1].strip() == rows[0]
    assert ("stream", "copy", "perf") in cells(imported)


def test_an_unknown_table_is_kept_as_it_is(tmp_path):
    body = table(['"x","1.00"'], header='"Colour","am64xx-hsevm: hue"')
    imported = guide(body + "\n" + table(['"add (MB/s)","2.00"']).split("\n\n", 1)[1])
    (folder,) = importer.store(imported, tmp_path)
    (kept,) = [r for r in read_records(folder) if isinstance(r, UnknownRecord)]
    assert '"Colour","am64xx-hsevm: hue"' in kept.text
    assert len(read_results(folder)) == 1


def test_an_empty_cell_is_a_missing_figure():
    header = '"Benchmarks","a-evm: perf","b-evm: perf","c-evm: perf"'
    imported = guide(table(['"add (MB/s)","","2.00",""'], header=header))
    assert list(imported.results) == ["b-evm"]
    assert imported.unknown == []


def test_a_column_of_another_file_system_is_still_its_section_s():
    body = (
        "MMCSD\n-----\n\nMMC EXT4\n^^^^^^^^\n\n.. csv-table:: MMC EXT4\n"
        '    :header: "Buffer size (bytes)","x-evm: Write Raw Throughput (Mbytes/sec)"\n\n'
        '    "102400","28.52"\n'
    )
    assert cells(guide(body), "x-evm") == {
        ("mmcsd_ext4", "102400", "write_throughput"): (28.52, None, None, "MB/s")
    }


def test_the_title_must_say_the_release_or_the_caller():
    with pytest.raises(UsageError, match=r"line 1: .*--release"):
        importer.interpret("Guide\n=====\n\n" + table([]))[0]
    text = "Guide\n=====\n\n" + table([])
    assert importer.interpret(text, release="8.06")[0].release == "8.06"
    assert importer.interpret(HEAD + table([]), release="8.06")[0].release == "10.01.00"


def test_a_guide_without_a_table_is_an_error():
    with pytest.raises(UsageError, match="line 1: has no csv-table"):
        importer.interpret(HEAD + "Nothing but words.\n")[0]


@pytest.mark.parametrize(
    ("body", "line", "reason"),
    [
        ("A\n-\n\nB\n^\n\nC\n~\n\nD\n-\n\nE\n~\n\n", 17, "Inconsistent title style"),
        ("  Quote\n  =====\n\nMore\n", 6, "Unexpected section title"),
    ],
)
def test_broken_structure_is_reported_by_line_and_nothing_else_is_lost(body, line, reason):
    imported = guide(body + "\n" + table(['"add (MB/s)","1.00"']))
    problem = only_problem(imported)
    assert problem.line == line
    assert reason in problem.reason
    assert imported.cells == 2


def test_importing_twice_is_importing_once(tmp_path):
    imported = guide(table(['"add (MB/s)","1.00"']))
    first = importer.store(imported, tmp_path)
    before = (first[0] / "results.jsonl").read_bytes()
    assert importer.store(imported, tmp_path) == first
    assert (first[0] / "results.jsonl").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [first[0].name]
    assert read_run(first[0]).kind == "guide"


def test_a_measured_run_is_never_overwritten(tmp_path):
    imported = guide(table(['"add (MB/s)","1.00"']))
    (folder,) = importer.store(imported, tmp_path)
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**run, "kind": "nightly"}))
    with pytest.raises(UsageError, match="holds a measured run"):
        importer.store(imported, tmp_path)


def test_strict_fails_on_anything_unknown(tmp_path, capsys):
    file = tmp_path / "guide.rst"
    file.write_text(HEAD + table(['"add (MB/s)","fast"']))
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
        importer.interpret(HEAD + text)[0]
    except UsageError as error:
        said = str(error)
    assert re.match(r"guide line \d+: ", said)
