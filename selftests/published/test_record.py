"""The record: what it says of a board through the years, who reads it, and what is doubted of its figures."""

import csv
import io
import json
import re
import sys
from pathlib import Path

import pytest
import yaml
from evmperf_guides import artefacts, importer

from evmperf.commands.cli import main as cli
from evmperf.judge import judge, nights, singles, trends
from evmperf.judge.published import identity, record, releases, scatter, source
from evmperf.judge.published.releases import NEWEST, of_release
from evmperf.measure.runs.history import StoredRun
from evmperf.model.errors import UsageError
from evmperf.model.facts import Facts
from evmperf.model.figures import Figure, Key, figures
from evmperf.model.results import Published, Result, Status
from evmperf.model.run import Run
from selftests.guide.test_guide_import import table, titled
from selftests.instruments import record as instrument
from selftests.support import programs, seeds, spools


def entry(board, release, os="Linux", name="guide.rst", value="1.00"):
    title = f"{os} {release} Performance Guide" if release else f"{os} Performance Guide"
    text = titled(table([["add (MB/s)", value]], ("Benchmarks", f"{board}: perf")), title)
    imported = importer.interpret(text, name)[0]
    ((found, results),) = imported.results.items()
    return instrument.entry_of(importer.run_of(imported, found), results)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A record of one board under three names, and of another."""
    file = tmp_path / "record.zst"
    there = [
        entry("am62xx_sk-fs", "10.00", value="5.00"),
        entry("am62xx-evm", "", name="x.2022-05-31.rst", value="2.00"),
        entry("am62xx-sk", "9.02", value="4.00"),
        entry("am62xx_sk", "9.02", os="RT-linux", value="3.00"),
        entry("j7200-evm", "11.00"),
    ]
    instrument.write(file, there)
    monkeypatch.setattr(record, "FILE", file)
    known = record.entries(file)
    monkeypatch.setattr(record, "entries", lambda _file=file: known)
    caches = (scatter.history, source.places, source._figures)
    for cache in caches:
        cache.cache_clear()
    yield file
    for cache in caches:
        cache.cache_clear()


def test_one_board_is_one_board_in_the_order_of_its_releases(written):
    found = record.of_board("am62xx_sk-fs", "Linux")
    assert [(e.release, e.printed, e.dated) for e in found] == [
        ("8.2", "am62xx-evm", True),
        ("9.02", "am62xx-sk", False),
        ("10.00", "am62xx_sk-fs", False),
    ]
    of_all = source.PublishedRuns().runs("am62xx-evm")
    assert {run.run.board for run in of_all} == {"am62xx_sk-fs"}
    assert len(of_all) == 4


def test_the_same_entries_make_the_same_file(written, tmp_path):
    again = tmp_path / "again.zst"
    instrument.write(again, reversed(record.entries()))
    assert again.read_bytes() == written.read_bytes()


@pytest.mark.parametrize("damage", [b"", b"text", b"\x28\xb5\x2f\xfd\x04\x00"])
def test_a_file_that_is_no_record_is_told_by_name(tmp_path, damage):
    file = tmp_path / "damaged.zst"
    file.write_bytes(damage)
    with pytest.raises(UsageError, match=r"damaged\.zst"):
        record.entries(file)


def published(capsys, *words):
    status = cli.main(["published", *words])
    return status, capsys.readouterr().out


@pytest.mark.parametrize("name", ["am62xx-evm", "AM62x SK", "am62x-sk", "am62x-sk.yaml"])
def test_a_figure_over_the_releases_of_a_board(written, capsys, name):
    status, said = published(capsys, name, "--case", "stream add", "--os", "Linux")
    assert status == 0
    assert "8.2 (from its date) 2, 9.02 4, 10.00 5" in said


def test_a_figure_as_csv_and_json(written, capsys):
    _, text = published(capsys, "am62xx_sk-fs", "--case", "stream add", "--json")
    rows = json.loads(text)
    assert [(r["os"], r["mean"]) for r in rows] == [
        ("Linux", 2.0),
        ("Linux", 4.0),
        ("Linux", 5.0),
        ("RT-linux", 3.0),
    ]
    assert all(row["guide"] and row["line"] for row in rows)
    _, text = published(capsys, "am62xx_sk-fs", "--case", "stream add", "--csv")
    assert [float(row["mean"]) for row in csv.DictReader(io.StringIO(text))] == [2, 4, 5, 3]


def test_without_a_board_the_boards_are_listed(written, capsys, monkeypatch):
    _, text = published(capsys)
    head, *rows = text.splitlines()
    assert head.split() == ["board", "releases", "first", "last", "figures"]
    assert [row.split()[0] for row in rows] == ["am62xx_sk-fs", "j7200-evm"]
    monkeypatch.setattr(record, "entries", lambda: ())
    assert cli.main(["published"]) == 4
    assert f"{record.FILE}: is missing" in capsys.readouterr().err


def test_sizes_are_named_as_people_do():
    assert record.size("102400") == "100 KiB"
    assert (record.size("1048576"), record.size("4711"), record.size("x")) == ("1 MiB", "", "")


def test_a_run_is_shown_beside_the_newest_figures_of_its_board(written):
    run = Run(id="mine", board="am62xx-sk", profile="full", os="Linux")
    found = source.baseline(run)
    assert found.published.release == "10.00"
    assert [f.mean for f in found.figures.values()] == [5.0]
    assert source.baseline(Run(id="v", board="am62xx-sk", profile="full", facts=Facts(virtual=True))) is None


def test_a_change_is_since_the_release_before_of_the_same_board(written):
    run = Run(id="mine", board="am62xx_sk-fs", profile="full", os="Linux", release="9.02")
    before = releases.previous_release(source.guides(), run)
    assert before.run.release == "8.2"
    assert [f.mean for f in figures(before.results()).values()] == [2.0]
    other = Run(id="x", board="j7200-evm", profile="full", os="Linux", release="11.00")
    assert releases.previous_release(source.guides(), other) is None


def test_history_takes_published_figures(written, capsys):
    words = ["am62xx_sk-fs", "stream", "perf", "--from", "published"]
    assert cli.main(["history", *words]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if " full " in line]
    assert [line[2] for line in lines] == ["8.2", "9.02", "9.02", "10.00"]


def test_a_guide_of_published_figures_says_that_they_are(written, capsys):
    words = ["--from", "published", "--release", "10.00", "--with", "delta"]
    assert cli.main(["guide", *words]) == 0
    text = capsys.readouterr().out
    assert "not measured by evmperf: am62xx_sk-fs." in text
    assert '"5.00 [+25.0 % better]"' in text
    assert "since release 9.02" in text


def test_the_site_takes_published_figures(written, tmp_path, capsys):
    assert cli.main(["site", "--from", "published", "-o", str(tmp_path / "site")]) == 0
    assert "5 runs of 2 boards" in capsys.readouterr().out
    pages = "".join(p.read_text() for p in (tmp_path / "site").rglob("*.html"))
    assert "10.00" in pages
    assert re.search(r"<li>10\.00 Linux: \S+, line \d+</li>", pages)


def test_names_of_boards_are_of_one_board_each():
    assert identity.same("am62xx-evm", "am62xx_sk-fs")
    assert not identity.same("am62xx_sk-fs", "am62xx_lp_sk-fs")
    assert identity.board("x1-evm") == "x1-evm"
    assert identity.of_module("AM62x LP SK") == "am62xx_lp_sk-fs"
    assert all(identity.board(name) in identity.names() for name in identity.names())


def test_the_record_that_ships_is_small_and_has_every_board(capsys):
    assert record.FILE.stat().st_size < 3_000_000
    assert sum(one.count for one in record.entries()) > 50_000
    status, text = published(capsys, "am62x-sk", "--case", "emmc_ext4 100 KiB write", "--csv")
    assert status == 0
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["metric"] for row in rows} == {"write_throughput", "write_cpu_load"}
    assert all(row["board"] == "am62xx_sk-fs" for row in rows)
    keys = [record.release_key(row["release"]) for row in rows if row["metric"] == "write_cpu_load"]
    assert keys == sorted(keys)


def test_asking_imports_nothing_that_is_slow():
    code = "import sys; from evmperf.commands.cli import main; main.main(sys.argv[1:])"
    words = ["published", "am62x-sk", "--case", "emmc_ext4 100 KiB write"]
    code += "; print({'numpy', 'scipy', 'docutils', 'labgrid'} & set(sys.modules))"
    done = programs.run(sys.executable, "-c", code, *words, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


@pytest.mark.skipif(not seeds.files(), reason="no shared/seeds beside the checkout")
def test_the_record_has_the_figures_of_the_seeds():
    file = seeds.files()[0]
    imported = importer.load(file)[0]
    known = {(e.printed, e.guide): e for e in record.entries()}
    for board, results in imported.results.items():
        assert known[board, file.name] == instrument.entry_of(importer.run_of(imported, board), results)


def test_published_figures_that_no_hardware_can_have_are_listed(capsys):
    assert cli.main(["published", "--impossible", "--json"]) == 0
    found = {(row["board"], row["benchmark"], row["case"]) for row in json.loads(capsys.readouterr().out)}
    assert ("j721e-idk-gw", "eth_cpsw_udp_egress_0loss", "1518") in found
    assert ("am335x-evm", "usbdev_hs_slave_write", "150") in found
    assert ("j784s4-evm", "audio_capture", "8000") in found
    assert not any(benchmark.startswith(("emmc", "mmcsd", "lmbench")) for _, benchmark, _ in found)
    assert cli.main(["published", "j7200", "--impossible"]) == 0
    assert capsys.readouterr().out == ""


def stored(number, board, release, os):
    return StoredRun(spools.a_run(number, board=board, release=release, os=os), list)


LINUX = stored(0, "am64xx-hsevm", "11.00", "RT-linux")
UBOOT = stored(1, "j7200-evm", "", "")


def test_a_board_measured_in_u_boot_alone_does_not_cost_the_guide():
    assert of_release([LINUX, UBOOT], NEWEST) == [LINUX, UBOOT]
    assert of_release([LINUX, UBOOT], NEWEST, os="RT-linux") == [LINUX, UBOOT]


def test_a_later_run_in_u_boot_alone_does_not_hide_the_release():
    later = stored(2, "am64xx-hsevm", "", "")
    assert of_release([LINUX, later], NEWEST) == [LINUX]


def test_two_operating_systems_are_a_choice():
    with pytest.raises(UsageError, match="Linux and RT-linux"):
        of_release([LINUX, stored(1, "j7200-evm", "11.00", "Linux")], NEWEST)


CASES = yaml.safe_load(Path(__file__).with_name("doubts.yaml").read_text())


def rows_of(case):
    """Published figures by their keys."""
    unit = case.get("unit", "MB/s" if case.get("by") == "steady" else "")
    for name, value in case["figures"].items():
        row, _, metric = name.rpartition(" ")
        mean, low, high = value if isinstance(value, list) else (value, None, None)
        key = Key(case["table"], row, metric)
        result = Result(key.benchmark, 0, "x", row, {}, "full", Status.MEASURED, ())
        yield key, Figure(key, unit, mean, low, high, None, 0, 0, "", result)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["table"])
def test_figures_that_others_beside_them_show_to_be_wrong_are_doubted(case):
    known = dict(rows_of(case))
    if case.get("by") == "steady":
        doubts = artefacts.doubts(known, "am64xx-hsevm")
    else:
        doubts = artefacts.doubts(known, "x1-evm")
    found, wanted = {f"{key.case} {key.metric}": why for key, why in doubts.items()}, case.get("doubted", {})
    assert set(found) == set(wanted)
    assert [name for name, words in wanted.items() if not re.search(words, found[name])] == []
    if "payload" in case:
        key = next(key for key in known if key.metric == "throughput")
        assert artefacts.payload(known, key) == case["payload"]


KEY = Key("emmc_ext4_fio_1g", "4k", "write_throughput")
STEADY = {(n,): (f"{n}.00", "MB/s", 53.0 + n / 10) for n in range(1, 6)}


@pytest.mark.parametrize(
    ("mean", "said"),
    [
        (53.9, ""),
        (30.0, ""),
        (5.32, "decimal point"),
        (0.536, "decimal point"),
        (12.0, "53.3 MB/s in"),
        (400.0, "53.3 MB/s in"),
        (0.0, "53.3 MB/s in"),
    ],
)
def test_a_figure_far_off_a_steady_history_is_doubtful(mean, said):
    why = artefacts.out_of_line(mean, "MB/s", STEADY, (9,))
    assert bool(why) == bool(said)
    assert said in why


@pytest.mark.parametrize(
    "series",
    [
        {},
        dict(list(STEADY.items())[:2]),
        {(n,): (str(n), "MB/s", value) for n, value in enumerate((53.0, 20.0, 90.0, 53.0))},
        {time: (name, "KiB/s", value) for time, (name, _, value) in STEADY.items()},
    ],
)
def test_a_history_that_is_short_unsteady_or_of_another_unit_tells_nothing(series):
    assert artefacts.out_of_line(1.0, "MB/s", series, (9,)) == ""


def test_a_release_is_no_witness_for_itself():
    series = dict(list(STEADY.items())[:3])
    assert artefacts.out_of_line(1.0, "MB/s", series, (1,)) == ""


def one(mean, count=0, doubt=""):
    cells = () if count else (Published(KEY.metric, "MB/s", mean, doubt=doubt),)
    result = Result(KEY.benchmark, 0, "emmc", KEY.case, {}, "full", Status.MEASURED, (), published=cells)
    return {KEY: Figure(KEY, "MB/s", mean, None, None, None, count, 0, "", result)}


RUN = Run("a", "x1-evm", "full", os="Linux", release="9.00")


def test_only_published_figures_are_doubted_for_their_history():
    others = (RUN.board, {KEY: STEADY}, RUN.release)
    assert set(artefacts.doubts(one(5.3), *others)) == {KEY}
    assert artefacts.doubts(one(5.3, count=3), *others) == {}


def test_no_verdict_builds_on_a_doubtful_figure():
    other = Run("b", "x1-evm", "full", os="Linux", release="10.00")
    baseline = {KEY: (other, one(53.0)[KEY])}
    (verdict,) = singles.against_figures(
        judge.Subject(RUN, one(5.3, doubt="a decimal point may be lost")), baseline
    )
    assert verdict.outcome is judge.Outcome.NOT_JUDGED
    assert "decimal point" in verdict.why


def test_the_record_is_read_once_for_a_board():
    board = record.entries()[0].board
    assert scatter.history(board, "Linux") is scatter.history(board, "Linux")


def test_no_trend_builds_on_a_doubtful_figure():
    runs = source.PublishedRuns().runs("am62xx_sk-fs")
    trend = trends.of_nights(nights.nights(runs)).trends[KEY]
    doubtful = [point for point in trend.points if point.other]
    assert [point.value for point in doubtful] == [5.32]
    assert "decimal point" in doubtful[0].other
    assert doubtful[0] not in trend.alike


@pytest.mark.parametrize("board", ["j721s2-evm", "k2g-evm"])
def test_a_trend_of_which_every_figure_is_doubtful_is_shown_and_not_judged(board):
    known = trends.of_nights(nights.nights(source.PublishedRuns().runs(board))).trends
    found = [trend for trend in known.values() if trend.doubt]
    assert found
    assert all(trend.alike and trend.verdict is None for trend in found)
