"""Reading guides: what a figure and a table are, what is known, what is reported, and by which line."""

import json
import re

import hypothesis
import pytest
from evmperf_guides import importer, rows
from hypothesis import strategies as st

from evmperf.commands.cli import main as cli
from evmperf.judge.published.declared import AGAIN
from evmperf.measure.runs.spool import read_records, read_results, read_run
from evmperf.model.errors import UsageError
from evmperf.model.records import UnknownRecord
from evmperf.model.units import Unit
from selftests.instruments.speed.guides import texts

BAR = "=" * 35
HEAD = f"{BAR}\n Linux 10.01.00 Performance Guide\n{BAR}\n\n"


def guide(body):
    return importer.interpret(HEAD + body)


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
        importer.interpret("Guide\n=====\n\n" + table([]))
    text = "Guide\n=====\n\n" + table([])
    assert importer.interpret(text, release="8.06").release == "8.06"
    assert importer.interpret(HEAD + table([]), release="8.06").release == "10.01.00"


def test_a_guide_without_a_table_is_an_error():
    with pytest.raises(UsageError, match="line 1: has no csv-table"):
        importer.interpret(HEAD + "Nothing but words.\n")


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
        importer.interpret(HEAD + text)
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


FIO = ("1m", "4m", "4k", "256k")
SIZES = ("102400", "262144", "524288")


def storage(section, caption="", rows=SIZES, system="EXT4", board="x1-evm"):
    headings = "\n".join(f"{name}\n{mark * 40}\n" for name, mark in zip(section, "-^~", strict=False))
    body = "\n".join(f'    "{row}","1.00","2.00"' for row in rows)
    return (
        f"{headings}\n.. csv-table:: {caption}\n"
        f'    :header: "Buffer size (bytes)","{board}: Write {system} Throughput (Mbytes/sec)",'
        f'"{board}: Write {system} CPU Load (%)"\n\n{body}\n\n'
    )


@pytest.mark.parametrize(
    ("section", "caption", "rows", "benchmark"),
    [
        (("EMMC Driver", "EMMC EXT4"), "EMMC EXT4", SIZES, "emmc_ext4"),
        (("EMMC", "EMMC EXT4"), "EMMC EXT4", SIZES, "emmc_ext4"),
        (("System Benchmarks", "EMMC", "EMMC EXT4"), "", SIZES, "emmc_ext4"),
        (("eMMC Flash",), "", FIO, "emmc_ext4_fio_1g"),
        (("Storage",), "EMMC EXT4 FIO 1G", FIO, "emmc_ext4_fio_1g"),
        (("SATA Driver",), "SATA EXT4 1G", SIZES, "sata_ext4_1g"),
        (("SATA Driver", "mSATA Driver"), "mSATA EXT4 SSD 1G", SIZES, "msata_ext4_1g"),
    ],
)
def test_sections_are_read_by_their_meaning(section, caption, rows, benchmark):
    imported = guide(storage(section, caption, rows))
    assert imported.unknown == []
    assert {r.benchmark for r in imported.results["x1-evm"]} == {benchmark}


@pytest.mark.parametrize(
    ("section", "caption", "rows", "both"),
    [
        (("MMCSD", "MMC EXT4"), "MMC EXT3", SIZES, ("MMC EXT4", "MMC EXT3")),
        (("EMMC Driver",), "EMMC EXT4", FIO, ("emmc_ext4,", "emmc_ext4_fio_1g")),
        (("EMMC Driver",), "EMMC EXT4 FIO 1G", SIZES, ("emmc_ext4_fio_1g", "emmc_ext4")),
        (("EMMC Driver", "MMC EXT4"), "", SIZES, ("'MMC EXT4' is below 'EMMC Driver'",)),
        (("Storage",), "Copying", SIZES, ("it could be any of", "emmc_ext4")),
    ],
)
def test_a_contradiction_makes_a_table_unknown_and_both_are_named(section, caption, rows, both):
    imported = guide(storage(section, caption, rows))
    assert imported.results == {}
    (problem,) = imported.unknown
    assert problem.table
    for said in both:
        assert said in problem.reason


def test_one_number_for_each_core_in_a_cell():
    body = (
        "System Benchmarks\n-----------------\n\n"
        "Stress-ng and Cyclic Test\n~~~~~~~~~~~~~~~~~~~~~~~~~\n\n"
        '.. csv-table:: \n    :header: "Latencies","am64xx-hsevm:per-core"\n\n'
        '    "Minimum (usec)","6,7"\n    "Maximum (usec)","57,66"\n'
    )
    imported = guide(body)
    assert imported.unknown == []
    assert cells(imported) == {
        ("cyclictest_stress", "Minimum (usec)", "latency_cpu0"): (6.0, None, None, "us"),
        ("cyclictest_stress", "Minimum (usec)", "latency_cpu1"): (7.0, None, None, "us"),
        ("cyclictest_stress", "Maximum (usec)", "latency_cpu0"): (57.0, None, None, "us"),
        ("cyclictest_stress", "Maximum (usec)", "latency_cpu1"): (66.0, None, None, "us"),
    }


def test_one_bad_row_costs_the_row_and_is_reported_at_its_line():
    whole = storage(("EMMC", "EMMC EXT4"), "EMMC EXT4")
    broken = whole.replace('"262144","1.00","2.00"', '"262144","1.00","2.00')
    imported = guide(broken)
    (problem,) = imported.unknown
    assert "comma-separated" in problem.reason
    assert (HEAD + broken).splitlines()[problem.line - 1].strip() == '"262144","1.00","2.00'
    assert [r.case for r in imported.results["x1-evm"]] == ["102400", "524288"]


def test_a_misspelt_board_is_not_another_board():
    many = [("EXT4", "EMMC EXT4"), ("EXT2", "EMMC EXT2"), ("VFAT", "EMMC VFAT")]
    body = "EMMC\n----\n\n" + "".join(
        storage((), caption, system=system, board="am64xx-hsevm" if n else "am64xx-hsemv")
        for n, (system, caption) in enumerate(many)
    )
    imported = guide(body)
    assert list(imported.results) == ["am64xx-hsevm"]
    assert "'am64xx-hsemv' is in 1 of the tables and resembles 'am64xx-hsevm'" in (imported.unknown[0].reason)


def test_figures_of_a_row_that_differ_between_two_tables_are_both_kept_and_marked():
    first = storage(("EMMC", "EMMC EXT4"), "EMMC EXT4")
    second = storage((), "EMMC EXT4").replace('"262144","1.00"', '"262144","1.50"')
    third = storage((), "EMMC EXT4").replace('"262144","1.00"', '"262144","1.70"')
    imported = guide(first + second)
    found = cells(imported, "x1-evm")
    both = ("262144", f"262144{AGAIN}")
    assert [found["emmc_ext4", c, "write_throughput"][0] for c in both] == [1.0, 1.5]
    assert imported.unknown == []
    said = [problem.reason for problem in imported.remarks]
    assert any("262144 write_throughput of x1-evm differs" in reason for reason in said)
    assert any("printed twice: 1 and 1.5" in reason for reason in said)
    assert any("repeats the figures of line" in reason for reason in said)
    (problem,) = guide(first + second + third).unknown
    assert "third" in problem.reason


def test_a_byte_order_mark_is_no_letter(tmp_path):
    file = tmp_path / "guide.rst"
    file.write_text("\ufeff" + HEAD + storage(("EMMC", "EMMC EXT4")), encoding="utf-8")
    assert importer.load(file).unknown == []


def test_a_caption_that_says_more_than_is_known_is_remarked_on():
    imported = guide(storage(("EMMC",), "EMMC EXT4 HS400"))
    (remark,) = imported.remarks
    assert remark.reason.startswith("emmc_ext4: ")
    assert "hs400" in remark.reason
    assert {r.benchmark for r in imported.results["x1-evm"]} == {"emmc_ext4"}


def test_a_table_that_names_no_board_is_its_heading_s():
    power = (
        "{board}\n~~~~~~~~~\n\nTable:  **Deep sleep**\n\n.. csv-table::\n"
        '    :header: "Rail name","Rail voltage(V)","Power (mW)"\n\n'
        '    "vdd_core","0.75","{mw}"\n\n'
    )
    body = (
        storage(("EMMC",), "EMMC EXT4", board="x1-evm")
        + storage((), "EMMC EXT4", board="y2-evm")
        + "Low Power Performance\n---------------------\n\n"
        + power.format(board="X1-EVM", mw="3.10")
        + power.format(board="Y2-EVM", mw="4.20")
    )
    imported = guide(body)
    assert imported.unknown == []
    place = ("lpm_power_deep_sleep", "vdd_core", "power")
    assert cells(imported, "x1-evm")[place][0] == 3.1
    assert cells(imported, "y2-evm")[place][0] == 4.2
