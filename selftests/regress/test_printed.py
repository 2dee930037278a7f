"""Published figures beside each other: what a reader of the printed bounds would say."""

import itertools
import re
from collections import Counter

import pytest
from evmperf_guides import importer

from evmperf.commands.cli import main as cli
from evmperf.judge import against, beside, judge, singles
from evmperf.judge.published import record, releases
from evmperf.model.errors import UsageError
from evmperf.model.figures import Figure, Key, figures
from evmperf.model.results import Result, Status
from evmperf.model.run import Run
from evmperf.model.units import Unit
from evmperf.model.verdict import Outcome, Reason
from selftests.guide.test_guide_import import HEAD, table
from selftests.support import seeds

KEY = Key("boot_time_mmcsd", "default_rootfs", "boot_time")
RESULT = Result(KEY.benchmark, 0, "boot", KEY.case, {}, "full", Status.MEASURED, ())
USUAL = 0.02


def figure(mean, low=None, high=None, key=KEY, unit="s"):
    return Figure(key, unit, mean, low, high, None, 0, 0, "", RESULT)


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome"),
    [
        ((28.67, 22.45, 36.73), (21.36, 20.52, 21.88), Outcome.WORSE),
        ((19.88, 17.98, 25.20), (19.08, 18.56, 19.56), Outcome.UNKNOWN),
        ((19.20, 18.98, 19.42), (19.08, 18.86, 19.26), Outcome.SAME),
        ((10.0, 9.0, 11.0), (10.8, 10.0, 12.0), Outcome.UNKNOWN),
        ((10.0, 9.0, 10.5), (10.8, 10.2, 12.0), Outcome.BETTER),
        ((10.0,), (10.4, 9.9, 11.0), Outcome.UNKNOWN),
        ((9.5,), (10.4, 9.9, 11.0), Outcome.UNKNOWN),
        ((8.5,), (10.4, 9.9, 11.0), Outcome.BETTER),
        ((10.4, 9.9, 11.0), (8.5,), Outcome.WORSE),
        ((10.0,), (10.03, 9.95, 10.05), Outcome.SAME),
        ((10.0,), (10.3,), Outcome.UNKNOWN),
        ((10.0,), (12.0,), Outcome.BETTER),
        ((1.848, 0.1, 3.0), (1.0, 0.25, 1.75), Outcome.UNKNOWN),
    ],
)
def test_two_published_figures(ours, theirs, outcome):
    """The last pair is 84.8 % apart, and its ranges hold each other's means: nothing is known."""
    run = Run("b", "x-evm", "full")
    known = {KEY: (run, figure(*theirs))}
    (verdict,) = singles.against_figures(judge.Subject(run, {KEY: figure(*ours)}), known, {KEY: USUAL})
    assert verdict.outcome is outcome
    assert (verdict.reason in (Reason.NOISE, Reason.ODD)) is (outcome is Outcome.UNKNOWN)


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
    status = cli.main(
        [
            "compare",
            "guide-11.00.00.00-Linux-am62lxx_evm-fs",
            "guide-11.01.16.13-Linux-am62lxx_evm-fs",
            "--results",
            str(tmp_path),
        ]
    )
    said = capsys.readouterr().out
    assert status == 1
    assert re.search(r"\d+ .*only in the baseline: .*uboot_flash_summary 4", said)
    assert "not in the baseline:" in said
    assert "emmc_ext4_fio_1g 16" in said


def test_tables_that_were_not_read_are_said(tmp_path, capsys):
    known = table(['"add (MB/s)","1.00"'])
    for release in ("10.01.00", "10.02.00"):
        strange = '.. csv-table:: Odd\n    :header: "Colour","am64xx-hsevm: Hue"\n\n    "red","1"\n'
        file = tmp_path / f"{release}.rst"
        file.write_text(HEAD.replace("10.01.00", release) + known + "\n" + strange)
        assert cli.main(["import-guide", str(file), "--into", str(tmp_path / "runs")]) == 0
    capsys.readouterr()
    runs = [f"guide-{release}-Linux-am64xx-hsevm" for release in ("10.01.00", "10.02.00")]
    assert cli.main(["compare", *runs, "--results", str(tmp_path / "runs")]) == 5
    said = capsys.readouterr().out
    for run in runs:
        assert f"1 table of {run} was not read" in said
