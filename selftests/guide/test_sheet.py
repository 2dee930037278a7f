"""Data sheets of TI's MCU+ SDK: the real ones whole, and forms that are not read."""

import json
import re

import pytest
from evmperf_guides import sheets

from evmperf.commands.cli import main as cli
from evmperf.judge.published import record
from evmperf.model.errors import UsageError
from selftests.instruments import sheet
from selftests.support import seeds

REAL = seeds.real("datasheets", "*.md")
FIGURES = re.compile(r"\((?:ms|us|ns|MiBps)\)")


def printed(text):
    """The numbers below headings of columns with a unit, by line, read in another way than the reader's."""
    found, columns = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        cells = [cell.strip() for cell in line.split("|")]
        if "|" not in line:
            columns = []
        elif any(FIGURES.search(cell) for cell in cells):
            columns = [n for n, cell in enumerate(cells) if FIGURES.search(cell)]
        elif columns and not set(line) <= set("-| \t"):
            found[number] = [float(re.match(r"[\d.]+", cells[n])[0]) for n in columns]
    return found


def by_line(read):
    """The numbers that the reader found, by line."""
    found = {}
    for value in (value for cases in read.cases.values() for case in cases for value in case.values):
        found.setdefault(value.line, []).append(value.mean)
    return found


@seeds.needs("real/datasheets")
@pytest.mark.parametrize("file", REAL, ids=lambda file: file.stem)
def test_every_number_of_a_real_sheet_is_read_with_its_line(file):
    read = sheet.load(file)
    ours, wanted = by_line(read), printed(file.read_text())
    assert len(wanted) > 30
    assert {line: ours.get(line) for line in wanted} == wanted
    assert all(problem.kept for problem in read.problems)


def with_cells(text, change):
    """The sheet with each row of its tables of figures changed; other lines stay."""
    lines, within = text.splitlines(), False
    for number, line in enumerate(lines):
        within = "|" in line and (within or bool(FIGURES.search(line)))
        if within:
            lines[number] = "|".join(change([cell.strip() for cell in line.split("|")]))
    return "\n".join(lines)


FORMS = {
    "figures first": lambda text: with_cells(text, lambda cells: cells[::-1]),
    "key last": lambda text: with_cells(text, lambda cells: [*cells[1:], cells[0]]),
    "pipes around": lambda text: with_cells(text, lambda cells: ["", *cells, ""]),
    "other headings": lambda text: text.replace("Performance\n", "performance numbers (HS-SE)\n"),
    "a new mode": lambda text: text.replace("SDR50 ", "HS400ES "),
    "other lines": lambda text: text.replace("\n", "\r\n"),
    "square brackets": lambda text: re.sub(r"\((us|ms)\)", r"[in \1]", text),
}


@pytest.mark.parametrize("form", FORMS)
@seeds.needs("real/datasheets")
@pytest.mark.parametrize("file", REAL, ids=lambda file: file.stem)
def test_sheets_of_other_boards_may_be_laid_out_otherwise(file, form):
    """What the real sheets would be in another order of columns, or with other words."""
    read = sheet.interpret(FORMS[form](file.read_text()), file.name)
    ours, wanted = by_line(read), printed(file.read_text())
    assert {line: sorted(ours.get(line, [])) for line in wanted} == {n: sorted(v) for n, v in wanted.items()}
    assert [problem.reason for problem in read.problems if not problem.kept] == []


def test_bits_and_bytes_are_not_mixed_up():
    rates = {"MBps": "MB/s", "Mbps": "Mbit/s", "MiBps": "MiB/s", "KiB/s": "KiB/s"}
    heads = " | ".join(f"{name} rate({name})" for name in rates)
    ((_, cases),) = read(f"\nMode | {heads}\n--|--|--|--|--\nA | 1 | 2 | 3 | 4\n").cases.items()
    assert [value.unit for value in cases[0].values] == [*rates.values()]


@seeds.needs("real/datasheets")
def test_the_record_has_the_sheets():
    entries = [entry for file in REAL for entry in sheet.load(file).entries()]
    known = {(entry.board, entry.guide): entry.cases for entry in record.entries(sheets.FILE)}
    assert known == {(entry.board, entry.guide): entry.cases for entry in entries}


def test_totals_and_names_that_cannot_be_are_remarked_on():
    remarks = [p.reason for file in REAL for p in sheet.load(file).problems]
    assert sum("is in the table of SBL Stage1" in reason for reason in remarks) == 3 * bool(REAL)
    assert sum("the rows add up to" in reason for reason in remarks) == 4 * bool(REAL)


@pytest.mark.parametrize(
    ("better", "mode", "times"),
    [("HS400", "HS200", 1.56), ("HS200", "DDR52", 2.02), ("DDR52", "eMMC high-speed", 1.84)],
)
def test_the_price_of_an_emmc_mode(better, mode, times):
    price = sheets.price("am62pxx-sk", "emmc", "read", mode, better)
    now, then = re.fullmatch(
        rf"bare metal .*: ([\d.]+) MiB/s at {mode}, ([\d.]+) .*, line \d+\)", price
    ).groups()
    assert float(then) / float(now) == pytest.approx(times, abs=0.01)
    assert sheets.price("am64xx-hsevm", "emmc", "read", mode, better) == ""
    assert sheets.price("am62pxx-sk", "usb", "read", mode, better) == ""


def test_published_shows_bare_metal_figures(capsys):
    words = ["am62p-sk", "--case", "emmc_performance HS400 4 MiB read", "--json"]
    assert cli.main(["published", *words]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["os"], row["mean"], row["unit"], row["board"]) == (
        "bare metal",
        265.6,
        "MiB/s",
        "am62pxx_sk-fs",
    )


HEAD = "# Datasheet {#DATASHEET_AM64X_EVM}\n\n### EMMC Performance\n"
TABLE = "\nMode | Size(MiB) | Read speed(MiBps)\n-----|-----------|-----------\n"


def read(text):
    return sheet.interpret(HEAD + text + TABLE + "HS200 | 1 | 100.5\n", "own.md")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A | B\n--|--\nx | 5\n", "no column has a known unit"),
        ("A | B (furlongs)\n--|--\nx | 5\n", "no column has a known unit"),
        (f"{TABLE}HS200 | 1\n", "a row of 2 cells"),
        (f"{TABLE}HS200 | 1 | n/a\n", "is no figure"),
        (f"{TABLE}HS200 | 1 | 1e5\n", "is no figure"),
        (f"{TABLE}HS200 | 1 | -3\n", "is no figure"),
        (f"{TABLE}HS200 | 1 | 12 ms\n", "is no figure in MiBps"),
        (f"{TABLE}HS200 | 1 | 77\n", "has a second row"),
        ("<table><tr><th>Read (ms)</th></tr>\n<tr><td>5</td></tr></table>\n", "in HTML"),
    ],
)
def test_what_is_not_read_is_told_with_its_line(text, reason):
    found = read(text)
    (problem,) = [problem for problem in found.problems if reason in problem.reason]
    assert not problem.kept
    assert problem.line > 3
    assert [value.mean for cases in found.cases.values() for c in cases for value in c.values][-1] in (
        100.5,
        77,
    )


def test_rows_of_one_name_are_told_apart_by_the_bullets_above():
    blocks = "".join(
        f" - PHY : {phy}\n - DMA : enabled\n{TABLE}A | 1 | {n}\n" for n, phy in ((5, "on"), (3, "off"))
    )
    ((board, cases),) = read(blocks).cases.items()
    assert board == "am64xx-hsevm"
    assert [case.name for case in cases] == ["A|1 MiB|PHY on", "A|1 MiB|PHY off", "HS200|1 MiB"]


def test_a_sheet_of_a_board_without_a_guide_keeps_its_name():
    assert sheet.board_named("AM243X_EVM") == "am243x-evm"
    assert sheet.board_named("AM62X_EVM") == "am62xx_sk-fs"


@pytest.mark.parametrize("text", ["", "# A page\n\nx | y (ms)\n--|--\na | 5\n", HEAD])
def test_other_files_are_refused(text):
    with pytest.raises(UsageError, match=r"own\.md: is no data sheet"):
        sheet.interpret(text, "own.md")
