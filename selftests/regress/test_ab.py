"""A/B: what is decided of figures, and alarms that an A/B checks again; sessions that measure nothing."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from evmperf.boards import variation
from evmperf.judge import ab, confirm, experiment, paired, rounds
from evmperf.judge.experiment import Experiment
from evmperf.judge.rounds import Session, Sessions
from evmperf.measure.runs import differences
from evmperf.measure.runs.spool import Spool
from evmperf.model.change import Comparison, Quantity
from evmperf.model.errors import BoardError, LabError, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.facts import Facts
from evmperf.model.figures import Key
from evmperf.model.replies import WantedSession
from evmperf.model.results import Direction, Sample
from evmperf.model.run import Run
from evmperf.model.verdict import Judgement, Outcome, Verdict
from evmperf.publish.report import ab as report
from evmperf.publish.report import verdicts
from selftests.support import programs, runs
from selftests.support.deskboard import this_machine
from selftests.support.spools import a_case
from selftests.support.sshd import board_file

SLOWER = {"102400": -0.10, "1048576": 0.0}


def wanted(**given):
    sides = {"a": [], "b": ["args:slow"]}
    return Experiment(**{"id": "ab-1", "boards": ["evm.yaml"], "sides": sides, "seed": "s"} | given)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "ab-1").mkdir()
    return tmp_path / "ab-1"


def by_case(comparison, metric="write_throughput"):
    return {c.key.case: c for c in comparison.changes if c.key.metric == metric}


def test_a_loss_is_found_the_rest_is_the_same_and_what_is_decided_is_not_measured_on(folder):
    sessions = FakeSessions(folder, noisy(SLOWER))
    comparison = ab.go_on(folder, wanted(blocks=30), sessions)
    found = by_case(comparison)
    assert found["102400"].decision is Outcome.WORSE
    assert found["1048576"].decision is Outcome.SAME
    assert comparison.ended == "all requested metrics are decided"
    assert comparison.blocks < 30
    assert comparison.exit_status is ExitStatus.FAILED
    assert len(found["102400"].a) < len(found["1048576"].a)
    assert list(sessions.asked[-1].leave_out) == ["emmc_ext4/102400"]
    halves = [sorted(asked.leave_out) for asked in sessions.asked]
    assert halves[0::2] == halves[1::2], "both sides of a block measure the same"


def test_each_round_is_a_run_of_its_own_with_its_block(folder):
    sessions = FakeSessions(folder, noisy({"102400": 0.0}))
    ab.go_on(folder, wanted(blocks=2), sessions)
    assert len(list(folder.glob("*/run.json"))) == 4
    facts = [asked.fact[0] for asked in sessions.asked]
    assert sorted(facts) == [f"ab=ab-1 block {b} side {s}" for b in (0, 1) for s in "ab"]


def test_the_order_within_blocks_is_random_and_stays_what_it_was():
    asked = wanted()
    orders = ["".join(asked.order(block)) for block in range(40)]
    assert 8 < orders.count("ab") < 32
    assert orders == ["".join(wanted().order(block)) for block in range(40)]


def test_the_budget_ends_it_and_what_is_not_decided_says_which_change_cannot_be_told(folder):
    sessions = FakeSessions(folder, noisy({"102400": 0.015}))
    comparison = ab.go_on(folder, wanted(blocks=30, budget_s=700), sessions)
    assert comparison.blocks == 5
    assert comparison.ended == "the budget of 12 min is spent"
    (line,) = report.undecided(comparison)
    assert "5 blocks cannot tell a change of " in line
    assert comparison.exit_status is ExitStatus.UNDECIDED
    assert comparison.state == "unsure"
    assert "1 not decided" in report.as_markdown(comparison)
    assert "blocks" in comparison.plan(30, 700)
    assert "5 are allowed" in comparison.plan(30, 700)


def test_after_the_first_block_it_says_what_is_needed_and_when_that_is_not_allowed(folder):
    plans = []
    asked = wanted(blocks=3)
    sessions = FakeSessions(folder, noisy({"102400": 0.015}))
    ab.go_on(folder, asked, sessions, lambda now: plans.append(now.plan(3, 0)))
    assert re.match(r"at least 4 blocks, \d+ min in all, .*; 3 are allowed", plans[0])
    assert all(re.match(r"about \d+ blocks, \d+ min", plan) for plan in plans[1:])


def test_named_metrics_decide_when_it_ends(folder):
    sessions = FakeSessions(folder, noisy({"102400": -0.10, "1048576": 0.019}))
    asked = wanted(blocks=12, metrics=["emmc_ext4/102400/write_throughput"])
    comparison = ab.go_on(folder, asked, sessions)
    assert comparison.blocks < 12
    aside = comparison.count(Outcome.UNKNOWN)
    assert aside > 0
    assert comparison.headline == "1 metric worse"
    assert comparison.sentence().endswith(f": 1 worse, {aside} not decided by the way")


def test_interrupted_it_goes_on_where_it_was_without_the_half_block(folder):
    sessions = FakeSessions(folder, noisy({"102400": -0.10}))
    sessions.failures = [None] * 5 + [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        ab.go_on(folder, wanted(), sessions)
    again = experiment.Experiment.load(folder)
    assert len(again.rounds) == 6
    comparison = ab.go_on(folder, again, sessions)
    assert comparison.ended
    assert [pair[0].block for pair in again.pairs()][:3] == [0, 1, 3]
    assert [note for note in comparison.notes if "block 3" in note and "interrupted" in note]


def test_a_broken_lab_ends_it_with_the_state_kept(folder):
    sessions = FakeSessions(folder, noisy({"102400": -0.10}))
    sessions.failures = [None, None, ExitStatus.LAB_BROKEN]
    with pytest.raises(LabError, match="power switch"):
        ab.go_on(folder, wanted(), sessions)
    assert len(experiment.Experiment.load(folder).pairs()) == 1


def test_a_side_that_cannot_be_measured_ends_it(folder):
    sessions = FakeSessions(folder, noisy({"102400": 0.0}))
    sessions.failures = [ExitStatus.FAILED] * 6
    with pytest.raises(BoardError, match=r"3 blocks in a row.*A failed 3 times"):
        ab.go_on(folder, wanted(), sessions)


def test_two_at_once_are_refused(folder):
    with (
        experiment.held(folder),
        pytest.raises(UsageError, match="another evmperf is at work"),
        experiment.held(folder),
    ):
        pass


def test_an_ab_that_an_earlier_version_began_is_read(folder):
    rounds = [{"block": 0, "side": side, "version": "", "board": "evm.yaml", "run": side} for side in "ba"]
    began = {"id": "ab-1", "boards": ["evm.yaml"], "sides": {"a": [], "b": ["args:x"]}, "seed": "s"}
    (folder / experiment.FILE).write_text(json.dumps({**began, "rounds": rounds, "schema": 3}))
    assert [[entry.run for entry in pair] for pair in Experiment.load(folder).pairs()] == [["a", "b"]]


def test_interruptions_are_no_failures_of_a_side(folder):
    sessions = FakeSessions(folder, noisy(SLOWER))
    for _ in range(4):
        sessions.failures = [KeyboardInterrupt()]
        with pytest.raises(KeyboardInterrupt):
            ab.go_on(folder, wanted() if not sessions.asked[1:] else Experiment.load(folder), sessions)
    sessions.failures = [ExitStatus.FAILED]
    assert ab.go_on(folder, Experiment.load(folder), sessions).ended


def test_every_format_says_the_same(folder):
    sessions = FakeSessions(folder, noisy(SLOWER))
    asked = wanted(blocks=30)
    comparison = ab.go_on(folder, asked, sessions)
    a, b = zip(*asked.pairs(), strict=True)
    differ = differences.between([folder / one.run for one in a], [folder / one.run for one in b])
    assert [entry.area for entry in differ] == ["variation"]
    data = json.loads(report.as_json(comparison, differ))
    assert data["counts"]["worse"] == 1
    assert data["a"] == variation.AS_IS
    worse = next(change for change in data["changes"] if change["decision"] == "worse")
    assert worse["low"] < -0.1 < worse["high"] < 0
    text = report.text(comparison, differ, width=140)
    page, note = report.as_html(comparison, differ), report.as_markdown(comparison, differ)
    for shown in (text, page, note):
        assert "args:slow" in shown
        assert "1 worse" in shown
        assert f"{worse['change'] * 100:+.1f} %" in shown
    drawn = [json.loads(unescape(text)) for text in re.findall(r'data-plot="([^"]*)"', page)]
    assert [[y for _, y in plot["series"][0]["points"]] for plot in drawn] == [
        change["a"] for change in data["changes"]
    ]
    assert "| **worse** | eMMC ext4, 100 KiB, write |" in note


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=4, max_size=8))
def test_no_side_is_shown_with_a_load_that_nobody_measured(pairs):
    key = Key("emmc", "4k", "cpu_load")
    blocks = [({key: a}, {key: b}) for a, b in pairs]
    (change,) = paired.compare(blocks, {key: Quantity("%", Direction.LOWER)})
    _, b = change.middles
    assert min(change.b) <= b <= max(change.b)


def test_an_ab_of_which_nothing_was_measured_says_so():
    empty = Comparison("ab-1", "evm", "as-is", "args:slow", 0, 0.0, ())
    assert "nothing measured on both sides" in report.text(empty)
    assert empty.exit_status is ExitStatus.NOTHING
    assert "Still going on" in report.as_html(empty)


@pytest.mark.many_sessions
def test_this_machine_is_measured_in_turn_and_a_person_looks_on(tmp_path, sshd):
    words = ["ab", board_file(tmp_path, sshd), "--b", "run:: [/x]", "--budget", "1s", "--results", tmp_path]
    with this_machine():
        begun = programs.evmperf(*words, "-k", "openssl_throughput and aes-128-cbc and 1024")
        assert begun.returncode == ExitStatus.UNDECIDED, begun.stderr
        (folder,) = tmp_path.glob("ab-*")
        again = f"evmperf ab --resume {folder}"
        assert re.search(rf"1 not decided; .* --budget: {again}", begun.stderr)
        assert begun.stdout.endswith(f"Report: {folder}/ab.html\n")
        status, shown = programs.at_terminal(
            "ab", "--resume", folder, "--rounds", "2", "--budget", "9h", "--json"
        )
    assert status == ExitStatus.UNDECIDED, shown
    line = r"B \(run:: \[/x\]\) against A \(as-is\) on desk after 2 blocks: .* still open\)"
    assert re.search(line, " ".join(shown.split())), shown
    text = shown[shown.index("\n{") : shown.rindex("}") + 1]
    assert json.loads(text)["blocks"] == 2


BENCHMARK = "emmc_ext4"
UNITS = {"write_throughput": "MB/s", "read_throughput": "MB/s", "write_cpu_load": "%"}
Figures = Mapping[str, Mapping[str, float]]
"""Values by case and metric."""


class FakeSessions(Sessions):
    """`figures` says what a side's next run measures; exceptions in `failures` are raised, and exit
    statuses there returned without a run.
    """

    def __init__(self, folder: Path, figures: Callable[[WantedSession], Figures]) -> None:
        super().__init__(folder)
        self.figures = figures
        self.failures: list[BaseException | ExitStatus | None] = []
        self.asked: list[WantedSession] = []

    def measure(self, wanted: WantedSession) -> Session:
        self.asked.append(wanted)
        failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, BaseException):
            raise failure
        if failure is not None:
            return Session("", failure, 60.0, "The lab is broken: the power switch does not answer.")
        name = f"run-{len(list(self.folder.glob('*/run.json'))):03}"
        spool = Spool(self.folder, Run(name, "evm", "quick", facts=Facts(variation=list(wanted.vary))))
        for case, metrics in self.figures(wanted).items():
            if f"{BENCHMARK}/{case}" not in wanted.leave_out:
                samples = tuple(Sample(name, value, UNITS[name], 0, 1) for name, value in metrics.items())
                spool.append(a_case(benchmark=BENCHMARK, case=case, profile="quick", samples=samples))
        return Session(name, ExitStatus.OK, 60.0)


def noisy(changes: Mapping[str, float], seed: int = 1) -> Callable[[WantedSession], Figures]:
    """Figures with 1 % of noise; side B's throughput by case times 1 + change."""
    source = random.Random(seed)

    def figures(wanted: WantedSession) -> Figures:
        found = {}
        for case, change in changes.items():
            factor = 1 + change if wanted.vary else 1.0
            found[case] = {
                "write_throughput": 50 * factor * source.gauss(1, 0.01),
                "write_cpu_load": 30 + source.gauss(0, 5),
            }
        return found

    return figures


GOOD = {"name": "a.wic", "source": "/images/a.wic", "content_sha256": "aa"}
BAD = {"name": "b.wic", "source": "/images/b.wic", "content_sha256": "bb"}


def provisioned(name, image):
    return Run(name, "evm", "full", facts=Facts(provisioned=image or {}))


def alarm(case, metric="write_throughput"):
    key = Key("emmc_ext4", case, metric)
    return Verdict(key, Outcome.WORSE, "MB/s", Direction.HIGHER, 45.0, 50.0)


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """A run on disk, of which two cases are worse than before."""
    generator = runs.history(tmp_path, nights=0)
    folder = runs.write(tmp_path, runs.results(generator), number=1, provisioned=BAD)
    return folder, Judgement(folder.name, "evm", "last:30", (alarm("102400"), alarm("1048576")))


@pytest.mark.parametrize(("image", "told"), [(BAD, "ran the same image"), (None, "without --image")])
def test_the_same_or_no_image_is_not_what_changed(judged, image, told):
    with pytest.raises(UsageError, match=f"run-0 .*{told}"):
        confirm.asked(*judged, provisioned("run-0", image), "evm.yaml", 600)


def test_only_what_is_worse_is_measured_again(judged):
    folder, judgement = judged
    asked = confirm.asked(folder, judgement, provisioned("run-0", GOOD), "evm.yaml", 600)
    assert asked.boots == 1
    assert asked.sides == {"a": ["image:/images/a.wic"], "b": ["image:/images/b.wic"]}
    assert asked.select == "emmc_ext4"
    assert asked.budget_s == 600
    # pytest's -k finds the second in the name of the first.
    assert {"emmc_ext4_fio_1g/4k", "emmc_ext4/262144"} <= set(asked.leave_out)
    assert not {"emmc_ext4/102400", "emmc_ext4/1048576"} & set(asked.leave_out)
    for key in (v.key for v in judgement.verdicts):
        assert rounds.matches(key, asked.metrics)


@pytest.mark.parametrize(
    ("budget_s", "expected"),
    [
        (36000, {"102400": (Outcome.WORSE, "confirmed by"), "1048576": (Outcome.SAME, "not conf")}),
        (300, {"102400": (Outcome.WORSE, "not settled"), "1048576": (Outcome.WORSE, "not sett")}),
    ],
)
def test_an_ab_confirms_an_alarm_or_takes_it_back(judged, budget_s, expected):
    folder, judgement = judged
    asked = confirm.asked(folder, judgement, provisioned("run-0", GOOD), "evm.yaml", budget_s)
    place = folder.parent / asked.id
    place.mkdir()
    figures = noisy({"102400": -0.10, "1048576": 0.0})

    def by_image(wanted):
        return figures(structs.replace(wanted, vary=wanted.vary if "b.wic" in wanted.vary[0] else ()))

    sessions = FakeSessions(place, by_image)
    settled = confirm.settled(judgement, ab.go_on(place, asked, sessions), "run-0", "here/evm.yaml")
    found = {v.key.case: (v.outcome, v.why) for v in settled.verdicts}
    for case, (outcome, why) in expected.items():
        assert found[case][0] is outcome
        assert found[case][1].startswith(why)
    assert "the image of run-0" in settled.sentence()
    note = verdicts.as_markdown(settled).replace("\\", "")
    assert expected["102400"][1] in note
    named = "evmperf ab here/evm.yaml --git-bisect --a image:GOOD --b image:BUILT --metric emmc_ext4/102400/"
    assert (named in note) == expected["102400"][1].startswith("confirmed")
