"""What a guide is of: operating system, release and boards, by what it says and not by habit."""

import pytest
from evmperf_guides import importer, printed

from evmperf.benchmarks import catalogue
from evmperf.commands.cli import main as cli
from evmperf.judge.published import scatter
from evmperf.measure.runs.spool import read_run
from evmperf.model.errors import UsageError
from evmperf.model.figures import Key
from evmperf.model.figures import figures as by_key
from evmperf.publish.guide import layout
from selftests.guide.test_guide_import import BAR, cells, table
from selftests.guide.test_match import storage

STREAM = table(['"add (MB/s)","1.00"'])


def titled(title, body=STREAM):
    return f"{BAR}\n {title}\n{BAR}\n\n{body}"


@pytest.mark.parametrize(
    ("title", "name", "given", "os"),
    [
        ("RT-linux 9.01 Performance Guide", "guide.rst", "", "RT-linux"),
        ("RT-Linux Performance Guide", "guide.rst", "", "RT-linux"),
        ("Linux Performance Guide", "guide.rst", "", "Linux"),
        ("Performance Guide", "X1.RT_Linux.guide.rst", "", "RT-linux"),
        ("Performance Guide", "X1_Linux_Guide.rst", "", "Linux"),
        ("Performance Guide for X1", "guide.rst", "RT-linux", "RT-linux"),
        ("Performance Guide for X1", "guide.rst", "", "unknown"),
        ("RT-linux Performance Guide", "X1.Linux.rst", "Linux", "RT-linux"),
    ],
)
def test_the_operating_system_is_what_title_name_or_option_say(title, name, given, os):
    imported = importer.interpret(titled(title), name, release="9.01", os=given)[0]
    assert imported.os == os
    assert (os == "unknown") == any("name it with --os" in problem.reason for problem in imported.remarks)


def test_a_heading_may_say_that_it_is_of_a_real_time_kernel():
    body = STREAM.replace("System Benchmarks\n-----------------", "RT Linux Benchmarks\n" + "-" * 19)
    assert importer.interpret(titled("Performance Guide", body), release="9.1")[0].os == "RT-linux"


def test_what_contradicts_the_title_is_remarked_on():
    text = titled("RT-linux Performance Guide")
    imported = importer.interpret(text, "X1.Linux.rst", release="9.01")[0]
    assert any("RT-linux" in p.reason and "names Linux" in p.reason for p in imported.remarks)


@pytest.mark.parametrize(
    ("date", "release"),
    [("2022-05-31", "8.2"), ("2021-01-28", "7.2"), ("2024-01-25", "9.1"), ("2026-05-06", "12.0")],
)
def test_a_release_that_the_title_does_not_say_is_that_of_the_date(date, release):
    imported = importer.interpret(titled("Linux Performance Guide"), f"x.{date}.rst")[0]
    assert (imported.release, imported.dated) == (release, True)
    assert any("date" in problem.reason for problem in imported.remarks)
    assert importer.run_of(imported, "am64xx-hsevm").facts.release_from == "date"


def test_imports_of_two_systems_do_not_replace_each_other(tmp_path):
    for title in ("Linux 9.1 Performance Guide", "RT-linux 9.1 Performance Guide"):
        importer.store(importer.interpret(titled(title))[0], tmp_path)
    assert {read_run(path).os for path in tmp_path.iterdir()} == {"Linux", "RT-linux"}


def test_figures_of_an_unknown_system_do_not_replace_those_of_another_file(tmp_path):
    text = titled("Performance Guide")
    importer.store(importer.interpret(text, "one.rst", release="9.1")[0], tmp_path)
    importer.store(importer.interpret(text, "one.rst", release="9.1")[0], tmp_path)
    with pytest.raises(UsageError, match=r"one\.rst.*--os"):
        importer.store(importer.interpret(text, "two.rst", release="9.1")[0], tmp_path)


def test_a_second_guide_in_one_file_is_a_guide_of_its_own(tmp_path, capsys):
    second = titled("RT-linux 9.01 Performance Guide", STREAM.replace("1.00", "2.00"))
    file = tmp_path / "both.rst"
    file.write_text(titled("Linux 9.01 Performance Guide") + "\n" + second)
    one, two = importer.load(file)
    place = ("stream", "add", "perf")
    assert [(g.os, cells(g)[place][0]) for g in (one, two)] == [("Linux", 1.0), ("RT-linux", 2.0)]
    (result,) = two.results["am64xx-hsevm"]
    lines = file.read_text().splitlines()
    assert "2.00" in lines[result.published[0].line - 1]
    assert cli.main(["import-guide", str(file), "--into", str(tmp_path / "runs")]) == 0
    assert len(list((tmp_path / "runs").iterdir())) == 2
    assert "RT-linux 9.01" in capsys.readouterr().out


def captioned(*entries, title="EMMC"):
    """A section of tables (EXT2, EXT4, VFAT) and `Table:` lines, in this order."""
    parts = [f"{title}\n{'-' * 40}\n"]
    for entry in entries:
        if entry.startswith("Table:"):
            parts.append(f"{entry}\n")
        else:
            parts.append(storage((), "", system=entry).lstrip("\n"))
    return "\n".join(parts)


AFTER = captioned("EXT2", "Table: MMC EXT2", "EXT4", "Table: MMC EXT4", title="MMCSD")
BEFORE = captioned("Table: MMC EXT2", "EXT2", "Table: MMC EXT4", "EXT4", title="MMCSD")


@pytest.mark.parametrize(
    ("other", "entries", "found"),
    [
        (BEFORE, ("VFAT", "Table: EMMC EXT4", "EXT4", "Table: EMMC EXT2", "EXT2"), {"EXT4", "EXT2"}),
        (AFTER, ("VFAT", "Table: EMMC VFAT", "EXT4", "Table: EMMC EXT4", "EXT2"), {"VFAT", "EXT4"}),
        # Nothing else in the guide tells, and the tables' own words do.
        ("", ("VFAT", "Table: EMMC EXT4", "EXT4"), {"EXT4"}),
    ],
)
def test_a_caption_is_its_own_table_s_in_the_whole_guide(other, entries, found):
    imported = importer.interpret(titled("Linux 9.01 Performance Guide", other + captioned(*entries)))[0]
    emmc = [t for t in imported.source.tables if t.section == ("EMMC",)]
    for source in emmc:
        system = next(word for word in ("EXT2", "EXT4", "VFAT") if word in source.header[1])
        assert source.caption in ("", f"EMMC {system}")
        assert bool(source.caption) == (system in found)


def test_captions_that_could_be_of_either_neighbour_are_of_none():
    rows = ("1", "2")
    body = captioned("EXT4", "Table: EMMC EXT4", "EXT4").replace('"102400"', f'"{rows[0]}"')
    imported = importer.interpret(titled("Linux 9.01 Performance Guide", body))[0]
    assert imported.results == {}
    assert all("before or after" in problem.reason for problem in imported.unknown)


@pytest.mark.parametrize(
    ("modules", "given", "board"),
    [
        (("AM62A SK",), "", "am62axx_sk-fs"),
        (("AM62x SK", "AM62x LP SK"), "am62xx_sk-fs", "am62xx_sk-fs"),
        (("AM62x SK", "AM62x LP SK"), "", ""),
    ],
)
def test_a_table_without_a_board_is_that_of_the_only_module_or_the_given_one(modules, given, board):
    rule = f"+{'-' * 22}+{'-' * 22}+\n"
    lines = [f"| {name:<20} | {'of this guide':<20} |\n{rule}" for name in modules]
    head = f"{rule}| {'Name':<20} | {'Description':<20} |\n{rule.replace('-', '=')}{''.join(lines)}"
    body = (
        f"{head}\nTable:  Evaluation Modules\n\nSystem Benchmarks\n-----------------\n\n"
        '.. csv-table::\n    :header: "Latencies","CPU 0","CPU 1"\n\n'
        '    "Minimum (us)","5","6"\n    "Maximum (us)","50","60"\n'
    )
    imported = importer.interpret(titled("RT-linux 9.01 Performance Guide", body), board=given)[0]
    assert list(imported.results) == ([board] if board else [])
    assert bool(imported.unknown) == (not board)
    if board:
        place = ("cyclictest_stress", "Maximum (usec)", "latency_cpu1")
        assert cells(imported, board)[place][0] == 60.0


MODULES = """
+-------------+-------------+
| Name        | Description |
+=============+=============+
| AM62x SK    | One         |
+-------------+-------------+
| AM62x LP SK | Other       |
+-------------+-------------+

"""


ROWS = tuple(case.label for case in catalogue.benchmarks()["nbench"].cases("full"))
FIGURES = ("101.00", "99.00", "102.00", "98.00", "100.00", "103.00", "97.00", "100.50", "99.50")


def nameless(*values):
    rows = zip(ROWS, values, strict=False)
    body = table([f'"{case} (Iterations)","{value}"' for case, value in rows])
    body = body.replace('"am64xx-hsevm: perf"', '"perf"').replace("Stream\n^^^^^^", "NBench\n^^^^^^")
    return titled("Linux 9.02 Performance Guide", MODULES + body)


def history_of(boards, mean):
    series = {(9, 1): ("09.01", "iterations/s", mean)}
    known = {Key("nbench", case, "perf"): series for case in ROWS}
    return lambda board, os, without="": known if board in boards else {}


SK, LP = "am62xx_sk-fs", "am62xx_lp_sk-fs"


@pytest.mark.parametrize(
    ("boards", "mean", "whose"),
    [({SK}, 100.0, [SK]), ({LP}, 100.0, [LP]), ({SK, LP}, 100.0, []), ((), 100.0, []), ({SK}, 300.0, [])],
)
def test_a_table_of_no_board_is_that_of_the_only_one_with_such_figures(monkeypatch, boards, mean, whose):
    monkeypatch.setattr(scatter, "history", history_of(boards, mean))
    imported = importer.interpret(nameless(*FIGURES))[0]
    assert list(imported.results) == whose
    said = imported.remarks if whose else imported.unknown
    assert any("names no board" in problem.reason for problem in said)


def test_a_few_figures_that_are_alike_do_not_tell_a_board(monkeypatch):
    monkeypatch.setattr(scatter, "history", history_of({SK}, 100.0))
    assert importer.interpret(nameless(*FIGURES[:7]))[0].results == {}


def test_a_board_that_is_not_known_may_be_the_one(monkeypatch):
    monkeypatch.setattr(scatter, "history", history_of({SK}, 100.0))
    text = nameless(*FIGURES).replace("AM62x LP SK", "AM62x XY SK")
    assert importer.interpret(text)[0].results == {}


def test_a_layout_of_such_a_table_has_a_place_for_its_figures(monkeypatch):
    monkeypatch.setattr(scatter, "history", history_of({SK}, 100.0))
    (read,), (empty,) = (importer.interpret(nameless(*values)) for values in (FIGURES, [""] * len(ROWS)))
    known = {board: by_key(results) for board, results in read.results.items()}
    known["am64xx-hsevm"] = {}
    (slot,) = (slot for _, slot in layout.like(printed.of_guide(empty), known).slots())
    assert [column.board for column in slot.columns] == [SK]
    assert [column.printed for column in slot.columns] == ["perf"]


@pytest.mark.parametrize(
    ("bar", "read"), [("^^^^^", {"nbench", "lpm_resume_latency"}), ("-----", {"nbench"})]
)
def test_a_table_of_no_board_is_that_of_one_below_its_outer_heading(monkeypatch, bar, read):
    monkeypatch.setattr(scatter, "history", history_of({SK}, 100.0))
    imported = importer.interpret(nameless(*FIGURES) + RESUME.replace("-----", bar, 1))[0]
    assert {result.benchmark for result in imported.results[SK]} == read


NAMED = table(['"add (MB/s)","1.00","2.00"'], f'"Benchmarks","{SK}: perf","{LP}: perf"')
RESUME = """
Power
-----

.. csv-table:: LPM Resume Latency Performance
    :header: "Low Power Mode","Total Resume Latency (ms)"

    "Deep Sleep","146.45"
"""


@pytest.mark.parametrize(
    ("title", "note", "whose"),
    [
        ("Linux 12.00.00", "\n.. note::\n\n    Of the AM62x LP SK only.\n", LP),
        ("Linux 12.00.00", "\nFigures of the AM62x SK.\n", SK),
        ("Linux 12.00.00", "\nMeasured on the SK-AM62-LP.\n", LP),
        ("AM62x LP SK Linux 12.00.00", "", LP),
        ("AM62x LP SK Linux 12.00.00", "\nMeasured on the AM62x SK.\n", SK),
        ("Linux 12.00.00", "\nMeasured: AM62x SK, AM62x LP SK.\n", ""),
        ("Linux 12.00.00", "\nMeasured on the AM64x EVM.\n", ""),
        ("Linux 12.00.00", "", ""),
    ],
)
def test_a_note_below_a_table_or_the_title_says_whose_it_is(title, note, whose):
    text = f"{BAR}\n {title} Performance Guide\n{BAR}\n\n" + NAMED + RESUME + note
    imported = importer.interpret(text)[0]
    read = [b for b, results in imported.results.items() for r in results if r.case == "Deep Sleep"]
    assert read == ([whose] if whose else [])
    assert whose or any("names no board" in problem.reason for problem in imported.unknown)
