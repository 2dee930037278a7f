"""Figures beside each other as a reader sees them: published ones, and goals."""

import itertools
import json
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from evmperf_guides import importer

from evmperf.commands.cli import main as cli
from evmperf.commands.cli.main import main
from evmperf.judge import against, beside, goals, judge, singles
from evmperf.judge.published import record, releases
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.facts import Facts
from evmperf.model.figures import Figure, Key, figures
from evmperf.model.results import Result, Status
from evmperf.model.run import Run
from evmperf.model.units import Unit
from evmperf.model.verdict import Outcome, Reason
from evmperf.publish.report import page
from selftests.guide.test_guide_import import STREAM, titled
from selftests.support import runs, seeds

KEY = Key("boot_time_mmcsd", "default_rootfs", "boot_time")
RESULT = Result(KEY.benchmark, 0, "boot", KEY.case, {}, "full", Status.MEASURED, ())
USUAL = 0.02
PAIRS = yaml.safe_load(Path(__file__).with_name("printed.yaml").read_text())


def figure(mean, low=None, high=None, key=KEY, unit="s"):
    return Figure(key, unit, mean, low, high, None, 0, 0, "", RESULT)


@pytest.mark.parametrize(("ours", "theirs", "outcome"), PAIRS)
def test_two_published_figures(ours, theirs, outcome):
    run = Run("b", "x-evm", "full")
    known = {KEY: (run, figure(*theirs))}
    (verdict,) = singles.against_figures(judge.Subject(run, {KEY: figure(*ours)}), known, {KEY: USUAL})
    assert verdict.outcome == outcome
    assert (verdict.reason in (Reason.NOISE, Reason.ODD)) is (outcome == Outcome.UNKNOWN)


def test_the_next_value_that_a_program_can_print_is_no_change():
    key = Key("whetstone", "whetstone", "perf")
    one, two = (figure(value, key=key, unit="MWIPS") for value in (3333.3, 5000.0))
    assert not beside.compare(one, two, {key: USUAL}).differ
    assert beside.compare(figure(1000.0, key=key), two, {key: USUAL}).differ


def releases_of_boards():
    """Figures by board and operating system, release by release: all published ones there are."""
    known = {}
    for entry in releases.published():
        known.setdefault((entry.run.board, entry.run.os), []).append((entry.run, figures(entry.results())))
    for file in seeds.real("guides", "am*-*.rst"):
        try:
            imported = importer.load(file)[0]
        except UsageError:  # it states no release, so it has no neighbour
            continue
        for board, results in imported.results.items():
            run = importer.run_of(imported, board)
            known.setdefault((board, run.os), []).append((run, figures(results)))
    for there in known.values():
        there.sort(key=lambda entry: record.release_key(entry[0].release))
        yield from itertools.pairwise(there)


def verdicts(before, after):
    run, found = after
    known = {key: (before[0], figure) for key, figure in before[1].items()}
    subject = judge.Subject(run, found)
    return singles.against_figures(subject, known, against.usual())


def within(figure, other):
    return other.low is not None and other.low <= figure.mean <= other.high


def test_no_verdict_is_one_that_the_printed_bounds_refute():
    """Of each release against the one before, verdicts of every kind among them."""
    refuted, kinds = Counter(), set()
    for before, after in releases_of_boards():
        for verdict in verdicts(before, after):
            kinds.add(verdict.outcome)
            if verdict.key not in before[1]:
                continue
            old, new = before[1][verdict.key], after[1][verdict.key]
            inside = within(old, new) or within(new, old)
            margin = max(0.05 * abs(old.mean), verdict.unit == Unit.PERCENT)
            wrong = {
                Outcome.SAME: abs(new.mean - old.mean) > margin,
                Outcome.BETTER: inside,
                Outcome.WORSE: inside,
            }
            if wrong.get(verdict.outcome):
                refuted[after[0].board, after[0].release, verdict.key] += 1
    assert refuted == {}
    assert kinds >= {Outcome.SAME, Outcome.BETTER, Outcome.WORSE, Outcome.UNKNOWN}


def test_udp_of_another_payload_is_not_compared():
    def row(payload, kpps):
        return {
            Key("eth_cpsw_udp_egress_0loss", "64", metric): figure(
                value, key=Key("eth_cpsw_udp_egress_0loss", "64", metric), unit=unit
            )
            for metric, value, unit in (
                ("throughput", kpps * payload * 8e-3, "Mbit/s"),
                ("kpps", kpps, "kpps"),
            )
        }

    run = Run("b", "x-evm", "full")
    baseline = {k: (run, f) for k, f in row(18, 60.0).items()}
    for verdict in singles.against_figures(judge.Subject(run, row(64, 60.0)), baseline):
        assert verdict.outcome is Outcome.NOT_COMPARABLE
        assert verdict.why == "payload differs (64 bytes, not 18)"


def test_what_only_one_side_has_is_said_by_table(tmp_path, capsys):
    runs = (f"guide-{release}-Linux-am62lxx_evm-fs" for release in ("11.00.00.00", "11.01.16.13"))
    status = cli.main(["compare", *runs, "--results", str(tmp_path)])
    said = capsys.readouterr().out
    assert status == 1
    assert re.search(r"\d+ .*only in the baseline: .*uboot_flash_summary 4", said)
    assert "not in the baseline:" in said
    assert "emmc_ext4_fio_1g 16" in said


def test_tables_that_were_not_read_are_said(tmp_path, capsys):
    for release in ("10.01.00", "10.02.00"):
        strange = '.. csv-table:: Odd\n    :header: "Colour","am64xx-hsevm: Hue"\n\n    "red","1"\n'
        file = tmp_path / f"{release}.rst"
        file.write_text(titled(STREAM + strange, f"Linux {release} Performance Guide"))
        assert cli.main(["import-guide", str(file), "--into", str(tmp_path / "runs")]) == 0
    capsys.readouterr()
    runs = [f"guide-{release}-Linux-am64xx-hsevm" for release in ("10.01.00", "10.02.00")]
    assert cli.main(["compare", *runs, "--results", str(tmp_path / "runs")]) == 5
    said = capsys.readouterr().out
    for run in runs:
        assert f"1 table of {run} was not read" in said


WRITE = Key("emmc_ext4", "1048576", "write_throughput")
BOARD = "am64xx-hsevm"


def of_board(name, file=""):
    return goals.of_run(Run("r", name, "full", facts=Facts(board_file=str(file))))


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Writes the lab's file of goals."""

    def write(said):
        file = tmp_path / "goals.yaml"
        file.write_text(said if isinstance(said, str) else yaml.safe_dump(said))
        monkeypatch.setenv(goals.LAB_FILE, str(file))
        return file

    return write


@pytest.mark.parametrize(
    "name", ["emmc_ext4 1048576 write_throughput", "emmc_ext4 1 MiB write", "eMMC ext4, 1 MiB, write"]
)
def test_a_figure_has_its_ids_and_its_words(lab, name):
    lab({"*": {name: "at least 55 MB/s, owner storage team, margin 2 %"}})
    (goal,) = of_board(BOARD)
    assert goal == goals.Goal(WRITE, "at least 55 MB/s", "storage team", 55.0, False, 0.02)


@pytest.mark.parametrize(
    ("text", "value", "word"),
    [
        ("at least 55 MB/s, owner a, margin 2 %", 55.0, "met"),
        ("at least 55 MB/s, owner a, margin 2 %", 54.0, "cannot tell"),
        ("at least 55 MB/s, owner a, margin 2 %", 53.0, "missed"),
        ("over 55 MB/s, owner a", 54.99, "missed"),
        ("under 55 MB/s, owner a, margin 2 %", 54.0, "met"),
        ("at most 55 MB/s, owner a, margin 2 %", 56.0, "cannot tell"),
        ("at most 55 MB/s, owner a, margin 2 %", 57.0, "missed"),
        ("at most 55 MB/s, owner a", None, "not measured"),
    ],
)
def test_what_a_figure_says_of_a_goal(lab, text, value, word):
    lab({BOARD: {"emmc_ext4 1 MiB write": text}})
    (goal,) = of_board(BOARD)
    assert goal.reached(value, "MB/s").word == word
    assert of_board("another") == []


def test_a_board_file_has_goals_and_the_labs_count_before(tmp_path, lab):
    text = (goals.boards.ENV_DIR / "virtual.yaml").read_text()
    file = tmp_path / "board.yaml"
    name = "emmc_ext4 1 MiB write"
    said = f"    options:\n      goals:\n        {name}: at least 5 MB/s, owner a\n"
    file.write_text(text.replace("    options:\n", said, 1))
    (goal,) = of_board("virtual-evm", file)
    assert (goal.key, goal.limit) == (WRITE, 5.0)
    lab({"virtual-evm": {name: "at least 7 MB/s, owner lab"}})
    assert [goal.limit for goal in of_board("virtual-evm", file)] == [7.0]


@pytest.mark.parametrize(
    ("goal", "status", "word"),
    [
        ("at least 200 MB/s, owner Ada", ExitStatus.FAILED, "missed"),
        ("at least 101 MB/s, owner Ada, margin 50 %", ExitStatus.UNDECIDED, "cannot tell"),
        ("at least 50 MB/s, owner Ada", ExitStatus.OK, "met"),
    ],
)
def test_a_goal_has_its_exit_status_and_its_place_in_note_and_report(tmp_path, lab, goal, status, word):
    lab({BOARD: {"emmc_ext4 1 MiB write": goal}})
    generator = runs.history(tmp_path / "r", nights=12)
    changed = {tuple(WRITE): 0.999}
    folder = runs.write(tmp_path / "r", runs.results(generator, changed=changed), number=20)
    files = [tmp_path / name for name in ("note.md", "check.json")]
    words = ["check", str(folder), "--against", "last:30", "--results", str(tmp_path / "r")]
    assert main([*words, "--markdown", str(files[0]), "--json", str(files[1])]) == status
    (found,) = json.loads(files[1].read_text())["goals"]
    assert (found["word"], found["owner"]) == (word, "Ada")
    assert f"goal {word}: eMMC ext4, 1 MiB, write" in files[0].read_text().replace("\\", "")
    text = page.render(folder)
    assert 'id="goals"' in text
    assert word in text[text.index('id="goals"') :]
    assert ("Goal missed: eMMC ext4, 1 MiB, write (owner Ada)." in text) == (word == "missed")


def test_a_goal_that_was_not_measured_is_no_success(tmp_path, lab):
    lab({BOARD: {"dhrystone cpu_clock perf": "at least 5 MHz, owner Ada"}})
    generator = runs.history(tmp_path / "r", nights=12)
    folder = runs.write(tmp_path / "r", runs.results(generator), number=20)
    words = ["check", str(folder), "--against", "last:30", "--results", str(tmp_path / "r"), "--dry-run"]
    assert main(words) == ExitStatus.UNDECIDED
