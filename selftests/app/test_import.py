"""`evmperf import`: figures of others become runs that every command reads and no measured figure meets."""

import csv
import datetime
import io
import json
import re

import pytest

from evmperf.commands.cli import main as cli
from evmperf.measure.runs.history import SpoolFolder
from evmperf.model.exits import ExitStatus
from selftests.support import runs, seeds

NIGHTS, LOSS = 30, 0.7
"""Nights of a made series of seconds, in the last four of which it takes that much longer."""


def night(number):
    """Seconds since the epoch, commit, and seconds that it took."""
    took = 2.0 + 0.01 * (number % 3) + LOSS * (number >= NIGHTS - 4)
    return 1_700_000_000 + number * 86_400, f"{number:02d}c0ffee", took


def as_csv(folder):
    file = folder / "ci.csv"
    rows = [(at, "build", took, commit, "s") for at, commit, took in map(night, range(NIGHTS))]
    _write(file, ["time", "series", "value", "commit", "unit"], rows)
    return file, "foreign-ci", "build", ""


def as_asv(folder):
    """The newer form, with a parameter and a value that was not measured; the last night in the older one."""
    machine = folder / "results" / "i7"
    machine.mkdir(parents=True)
    (folder / "results" / "benchmarks.json").write_text('{"time_x": {"unit": "seconds"}, "version": 2}')
    (machine / "machine.json").write_text("{}")
    for at, commit, took in map(night, range(NIGHTS)):
        values, params = [took, None], [["'a'", "'b'"]]
        kept = {"time_x": [values, params, "v1"]}
        if at == night(NIGHTS - 1)[0]:
            kept = {"time_x": {"result": values, "params": params}, "time_other": took}
        whole = {"commit_hash": commit, "date": at * 1000, "env_name": "py3", "results": kept}
        text = json.dumps({**whole, "result_columns": ["result", "params", "version"], "python": "3"})
        (machine / f"{commit}-py3.json").write_text(text.replace("null", "NaN"))
    return folder / "results", "foreign-i7", "time_x", "'a'"


def as_data_js(folder):
    entries = [
        {
            "commit": {"id": commit, "message": "{x}"},
            "date": at * 1000,
            "tool": "customSmallerIsBetter",
            "benches": [{"name": "parse", "value": took, "unit": "widgets", "range": "± 3"}],
        }
        for at, commit, took in map(night, range(NIGHTS))
    ]
    file = folder / "data.js"
    file.write_text(f"window.BENCHMARK_DATA = {json.dumps({'lastUpdate': 1, 'entries': {'Go': entries}})};\n")
    return file, "foreign-data", "Go", "parse"


def _write(file, head, rows):
    with file.open("w", newline="") as opened:
        csv.writer(opened).writerows([head, *rows])


def run(*words):
    return cli.main([str(word) for word in words])


@pytest.mark.parametrize("form", [as_csv, as_asv, as_data_js])
def test_a_series_of_others_is_followed_to_its_end(form, tmp_path, capsys):
    """Imported, judged, listed, shown: a planted loss is found and dated."""
    file, board, benchmark, case = form(tmp_path)
    results = tmp_path / "runs"
    assert run("import", file, "--results", results) == 0
    assert f"{NIGHTS} new runs ({board})" in capsys.readouterr().out
    there = SpoolFolder(results).runs(board)
    assert len(there) == NIGHTS
    for entry in there[20:]:
        status = run("check", entry.run.id, "--results", results, "--json", tmp_path / "said.json")
    assert status == ExitStatus.FAILED
    verdicts = json.loads((tmp_path / "said.json").read_text())["verdicts"]
    worse = [(v["benchmark"], v["case"]) for v in verdicts if v["verdict"] == "worse"]
    assert worse == [(benchmark, case)]
    assert f"since {there[NIGHTS - 4].run.id}" in capsys.readouterr().out
    assert "26c0ffee" in there[NIGHTS - 4].run.id
    assert run("history", board, benchmark, "--results", results) == 0
    assert "2.72" in capsys.readouterr().out
    assert run("site", "-o", tmp_path / "site", "--results", results) == 0
    assert board in (tmp_path / "site" / "index.html").read_text()
    capsys.readouterr()
    assert run("why", there[-1].run.id, "--results", results) == 0
    assert f"no published figures of {board}" in capsys.readouterr().out
    assert run("why", there[-1].run.id, "--against", there[0].run.id, "--results", results) == 0
    shown = capsys.readouterr().out
    assert f"{benchmark} {case}".strip() in shown
    assert "+36.0 %" in shown


def test_what_was_imported_is_not_imported_again_and_news_are(tmp_path, capsys):
    file, *_ = as_csv(tmp_path)
    whole = file.read_text()
    file.write_text("".join(whole.splitlines(keepends=True)[:11]))
    for text, said in ((None, "10 new runs"), (whole, "20 new runs"), (whole, "30 runs already there")):
        file.write_text(text or file.read_text())
        assert run("import", file, "--results", tmp_path / "runs") == 0
        assert said in capsys.readouterr().out


def export(results, file, *more):
    assert run("export", *more, "--csv", file, "--results", results) == 0
    return list(csv.DictReader(io.StringIO(file.read_text())))


def test_an_exported_file_comes_back_but_for_its_names(tmp_path):
    """Each column of each sample; a second time the very same file."""
    runs.history(tmp_path / "measured", nights=3)
    before = export(tmp_path / "measured", tmp_path / "one.csv")
    assert run("import", tmp_path / "one.csv", "--results", tmp_path / "two") == 0
    after = export(tmp_path / "two", tmp_path / "two.csv")
    named = [{**row, "board": f"foreign-{row['board']}", "run": f"foreign-{row['run']}"} for row in before]
    assert sorted(map(str, after)) == sorted(map(str, named))
    assert run("import", tmp_path / "two.csv", "--results", tmp_path / "three") == 0
    assert export(tmp_path / "three", tmp_path / "three.csv") == after


def test_no_measured_figure_is_compared_with_one_of_others(tmp_path, capsys):
    """In one folder, the same tables: neither lists, nor verdicts, nor a comparison by name mix them."""
    folder = tmp_path / "results"
    runs.history(folder, nights=8)
    arguments = ("check", "am64xx-hsevm-0007", "--dry-run", "--results", folder, "--json", "-")
    status = run(*arguments)
    alone = capsys.readouterr().out
    export(folder, tmp_path / "all.csv")
    slower = tmp_path / "slower.csv"
    rows = list(csv.reader((tmp_path / "all.csv").open()))
    value = rows[0].index("value")
    _write(slower, rows[0], [[*row[:value], float(row[value]) * 3, *row[value + 1 :]] for row in rows[1:]])
    assert run("import", slower, "--results", folder) == 0
    capsys.readouterr()
    assert run(*arguments) == status
    assert capsys.readouterr().out == alone
    assert run("history", "am64xx-hsevm", "emmc_ext4", "--results", folder) == 0
    assert "foreign" not in capsys.readouterr().out
    both = ("compare", "foreign-am64xx-hsevm-0003", "am64xx-hsevm-0007", "--results", folder)
    assert run(*both) == ExitStatus.NOTHING
    assert "foreign" in capsys.readouterr().out
    assert run("guide", "--release", "12.00", "--from", folder, "-o", tmp_path / "guide.rst") == 0
    assert "foreign" not in (tmp_path / "guide.rst").read_text()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "time,series\n1,x\n", r"a.csv: has no column value: "),
        ("a.csv", "time,series,value\n1700000000,x,fast\n", r"a.csv line 2: 'fast' is no number"),
        ("a.csv", "time,series,value\n1700000000,x,1e30\n", r"a.csv line 2: '1e30' is no number"),
        ("a.csv", "time,series,value\n1700000000,x,nan\n", r"a.csv line 2: 'nan' is no number"),
        ("a.csv", "\ufefftime,series,value\n1700000000,x,1_5\n", r"a.csv line 2: '1_5' is no number"),
        ("a.csv", "time,series,value\nyesterday,x,1\n", r"a.csv line 2: Invalid isoformat"),
        ("a.csv", "time,series,value\n0001-01-01,x,1\n", r"a.csv: a, x: "),
        ("a.csv", "time,series,value\n1700000000,x\n", r"a.csv line 2: it has not as many cells"),
        ("a.csv", "time,series,value,better\n1700000000,x,1,up\n", r"line 2: better is 'up'"),
        ("a.csv", "time,series,value\n9999999999999999999999,x,1\n", r"a.csv: a, x: "),
        ("a.js", 'x = {"entries": {"s": [{"date": 1}]}}', r"a.js: .*missing required field"),
        ("a.js", "window.BENCHMARK_DATA = {", r"a.js: "),
        ("a.yaml", "bucket: b\nmeasure: x\n", r"a.yaml: .*unknown field `measure`"),
        ("a.txt", "1", r"a.txt: is of no known form"),
        ("gone.csv", None, r"gone.csv: cannot be read: "),
    ],
)
def test_a_bad_file_is_refused_in_a_sentence_and_leaves_nothing(name, text, said, tmp_path, capsys):
    file = tmp_path / name
    if text is not None:
        file.write_text(text)
    assert run("import", file, "--results", tmp_path / "runs") == ExitStatus.USAGE
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert re.search(said, message)
    assert not list(tmp_path.glob("runs/*"))


def test_real_series_of_motor_controllers_are_judged(tmp_path, capsys):
    """Sixty of 1059 runs of boards in a loop, whose code size is known to have changed."""
    (file,) = seeds.real("series-3", "obot-controller.csv") or [None]
    if file is None:
        pytest.skip("needs the real series")
    rows = []
    with file.open() as opened:
        for line in list(csv.DictReader(opened))[-60:]:
            when = datetime.datetime.fromtimestamp(int(line["run_time_ms"]) / 1000, datetime.UTC).isoformat()
            for name, value in line.items():
                series, _, unit = name.partition(" (")
                if unit and value:
                    rows.append((when, series, value, line["commit"], unit.rstrip(")")))
    _write(tmp_path / "obot.csv", ["time", "series", "value", "commit", "unit"], rows)
    results = tmp_path / "runs"
    assert run("import", tmp_path / "obot.csv", "--results", results) == 0
    assert "60 new runs (foreign-obot)" in capsys.readouterr().out
    sizes = {s.value for e in SpoolFolder(results).runs() for r in e.results() for s in r.samples}
    assert sizes == {float(row[2]) for row in rows}
    assert run("check", "last", "--results", results, "--all") in {ExitStatus.OK, ExitStatus.FAILED, 6}
    shown = capsys.readouterr().out
    assert "text_size" in shown
    assert "it has no better direction" in shown  # cycles: nobody said which way
