"""The edges of judging, each a made history that is followed to its end."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml
from msgspec.structs import replace

from evmperf.judge import against, judge, life, nightly
from evmperf.judge.accepted import Accepted
from evmperf.judge.against import judged, parse
from evmperf.judge.nights import EarlierNight, Past
from evmperf.measure.runs.history import SpoolFolder
from evmperf.measure.runs.spool import VERDICTS
from evmperf.model.alarm import AlarmState, MetricAlarm
from evmperf.model.exits import ExitStatus
from evmperf.model.facts import Facts
from evmperf.model.figures import Key, figures
from evmperf.model.results import Sample
from evmperf.model.run import Run
from evmperf.model.verdict import Judgement, Outcome, Reason
from selftests.support import runs
from selftests.support.spools import a_case

WRITE = Key("emmc_ext4", "102400", "write_throughput")
READ = WRITE._replace(metric="read_throughput")
LOST = Key("eth_cpsw_udp_ingress_loss", "1518", "packet_loss")
BOOT = Key("boot_time_mmcsd", "default_rootfs", "boot_time")
UNITS = {WRITE: "MB/s", READ: "MB/s", LOST: "%", BOOT: "s"}
ALIKE = {}
HISTORIES = yaml.safe_load(Path(__file__).with_name("edges.yaml").read_text())


@dataclass
class Board:
    """A board whose nights are judged one after the other, each with what was said of those before."""

    marks: tuple = ()
    one_night: bool = True

    def __post_init__(self):
        self.past, self.told = [], []

    def night(self, values, **facts):
        """One more night: figures, or samples, by key; returns its verdicts by key."""
        at = len(self.past)
        run = Run(f"n{at:03}", "evm", "full", started_ns=at + 1, facts=Facts(**facts))
        samples = {key: tuple(np.atleast_1d(one).tolist()) for key, one in values.items()}
        results = [
            a_case(
                benchmark=key.benchmark,
                case=key.case,
                samples=tuple(
                    Sample(key.metric, one, UNITS.get(key, "s"), n, n) for n, one in enumerate(some)
                ),
            )
            for key, some in samples.items()
        ]
        subject = judge.Subject(run, figures(results), self.marks)
        found = nightly.against_nights(subject, self.past, one_night=self.one_night)
        known = {
            key: Past(float(np.mean(some)), UNITS.get(key, "s"), ALIKE, some) for key, some in samples.items()
        }
        alarms = {verdict.key: verdict.alarm for verdict in found if verdict.alarm}
        self.past.append(EarlierNight(run, known, alarms, True))
        self.told.append({verdict.key: verdict for verdict in found})
        return self.told[-1]

    def nights(self, levels, key=WRITE, noise=0.005, seed=1, **facts):
        """Nights of one metric around some levels; its verdicts."""
        random = np.random.default_rng(seed + len(self.past))
        return [
            self.night({key: level * np.exp(noise * random.standard_normal())}, **facts)[key]
            for level in levels
        ]


def worse(verdicts):
    return [number for number, verdict in enumerate(verdicts) if verdict.outcome is Outcome.WORSE]


def check(verdicts, said):
    """Holds of the verdicts of a stretch of nights what is said of it."""
    last, alarms = verdicts[-1], [verdict.alarm for verdict in verdicts if verdict.alarm]
    if "within" in said:
        first, *_ = worse(verdicts)
        assert first < said["within"]
        assert worse(verdicts) == list(range(first, len(verdicts)))
        assert {alarm.since for alarm in alarms[first:]} <= {said.get("since", alarms[-1].since)}
    if "outcome" in said:
        assert last.outcome == said["outcome"]
    if said.get("recovered"):
        assert AlarmState.RECOVERED in [alarm.state for alarm in alarms]
        assert last.outcome is not Outcome.WORSE
    assert last.since == said.get("dated", last.since)
    assert last.suspect or not said.get("suspect")
    assert said.get("why", "") in last.why
    if {"since", "size", "eased", "unit", "story"} & {*said}:
        assert said.get("story", "") in last.alarm.story()
        assert last.alarm.size == pytest.approx(said.get("size", last.alarm.size), abs=0.01, rel=0.2)
        for name in {"since", "eased", "unit"} & {*said}:
            assert getattr(last.alarm, name) == said[name]


@pytest.mark.parametrize(
    ("about", "case", "seed"),
    [
        (about, {**group, **more}, seed)
        for about, group in HISTORIES.items()
        for more in group.get("each", [{}])
        for seed in range(group.get("seeds", 1))
    ],
)
def test_a_history_is_followed_to_its_end(about, case, seed):
    board = Board(one_night=case.get("one_night", True))
    key = LOST if case.get("of") == "loss" else WRITE
    for said in case["nights"]:
        levels = [said["level"]] * said.get("times", 1)
        check(board.nights(levels, key, case.get("noise", 0.005), seed=seed * 1000), said)


def test_a_slow_night_of_the_board_is_no_hole_in_the_history():
    keys = [Key(f"table_{n}", "case", "time") for n in range(2)] + [
        Key("emmc_ext4", str(n), "write_throughput") for n in range(40)
    ]
    board, random = Board(), np.random.default_rng(3)
    for number in range(70):
        level = 80 if number % 9 == 4 else 100
        board.night({key: level * np.exp(0.01 * random.standard_normal()) for key in keys})
    for verdicts in board.told:
        for verdict in verdicts.values():
            numbers = (verdict.value, verdict.baseline, verdict.tolerance, verdict.change)
            assert all(np.isfinite(one) for one in numbers if one is not None), verdict
            assert verdict.alarm is None or verdict.alarm.is_finite
    random = np.random.default_rng(4)
    for _ in range(4):
        level = {keys[5]: 93}
        told = board.night(
            {key: level.get(key, 100) * np.exp(0.01 * random.standard_normal()) for key in keys}
        )
    assert told[keys[5]].outcome is Outcome.WORSE


def test_a_bad_verdict_costs_no_results_and_nothing_but_numbers_is_written(tmp_path):
    generator = runs.history(tmp_path, nights=20)
    for number in range(20, 24):
        folder = runs.write(tmp_path, runs.results(generator, changed={WRITE: 0.6}), number=number)
        judgement = judged(folder, parse("last:20"), SpoolFolder(tmp_path))
        against.keep(folder, judgement)
    file = folder / VERDICTS
    whole = file.read_text().splitlines()
    file.write_text("\n".join(['{"record": "verdict", "alarm": {"low": null}}', "{", *whole]) + "\n")
    folder = runs.write(tmp_path, runs.results(generator, changed={WRITE: 0.6}), number=24)
    (verdict,) = [
        v for v in judged(folder, parse("last:20"), SpoolFolder(tmp_path)).verdicts if v.key == WRITE
    ]
    assert verdict.alarm.nights == 5
    broken = replace(verdict.alarm, low=float("nan"))
    odd = judge.replace(verdict, alarm=broken, tolerance=float("inf"), baseline=float("nan"))
    against.keep(folder, Judgement(folder.name, "evm", "last:20", [odd]))
    for line in (folder / VERDICTS).read_text().splitlines():
        record = json.loads(line)
        assert not {"alarm", "was", "tolerance", "change"} & {
            name for name, one in record.items() if one is None
        }
        assert "alarm" not in record


@pytest.mark.parametrize("since", [28, 30])
def test_only_what_has_an_open_alarm_is_accepted_and_what_was_before_still_tells(since):
    board, random = Board(), np.random.default_rng(5)

    def night(write, read):
        noise = np.exp(0.005 * random.standard_normal(2))
        return board.night({WRITE: write * noise[0], READ: read * noise[1]})

    for _ in range(30):
        night(100, 100)
    for _ in range(5):
        assert night(80, 100)[READ].outcome is Outcome.SAME
    board.marks = (Accepted("emmc_ext4/*/*", "evm", f"n{since:03}", since + 1, "meant"),)
    told = night(80, 70)
    assert (told[WRITE].outcome, told[WRITE].alarm.state) == (Outcome.SAME, AlarmState.ACCEPTED)
    assert told[READ].outcome is Outcome.WORSE
    assert night(80, 100)[WRITE].alarm is None
    assert night(56, 100)[WRITE].outcome is Outcome.WORSE, "the level of so many nights still tells"


def test_a_red_figure_that_is_not_measured_any_more_stays_in_the_list():
    board = Board()
    random = np.random.default_rng(6)
    for number in range(40):
        noise = np.exp(0.005 * random.standard_normal(2))
        board.night({WRITE: (100 if number < 30 else 80) * noise[0], READ: 100 * noise[1]})
    for _ in range(3):
        told = board.night({READ: 100 * np.exp(0.005 * random.standard_normal())})
        assert told[WRITE].reason is Reason.NOT_MEASURED
        assert "not measured since n039" in told[WRITE].why
        assert Judgement("r", "b", "last", list(told.values())).exit_status is ExitStatus.UNDECIDED
    assert board.night({WRITE: 80, READ: 100})[WRITE].alarm.since == "n030"
    board.marks = (Accepted("emmc_ext4/*/*", "evm", "n030", 31, "meant"),)
    assert WRITE not in board.night({READ: 100})


@pytest.mark.parametrize("seed", range(4))
def test_two_levels_of_boot_time_do_not_hide_a_loss_of_a_tenth(seed):
    random = np.random.default_rng(seed)

    def boots(factor):
        return factor * (10 + 3 * (random.random(20) < 0.5) + 0.1 * random.standard_normal(20))

    board = Board()
    for _ in range(30):
        board.night({BOOT: boots(1)})
    lost = [board.night({BOOT: boots(1.1)})[BOOT] for _ in range(10)]
    assert worse(lost)[0] <= 3
    ended = [board.night({BOOT: boots(1)})[BOOT] for _ in range(10)]
    assert AlarmState.RECOVERED in [verdict.alarm.state for verdict in ended if verdict.alarm]


def test_a_lab_with_a_new_image_every_night_can_have_a_slow_board():
    keys = [Key("emmc_ext4", str(n), "write_throughput") for n in range(40)]
    board, random = Board(), np.random.default_rng(8)
    for number in range(40):
        told = board.night(
            {key: (100 if number < 39 else 80) * np.exp(0.01 * random.standard_normal()) for key in keys},
            kernel=f"6.18.{number}",
        )
    assert not [verdict for verdict in told.values() if verdict.outcome is Outcome.WORSE]
    assert all(verdict.suspect for verdict in told.values())


def test_a_figure_twice_as_slow_is_never_called_noise():
    """Not where such figures were as far off before, and not where a baseline of one run is."""
    keys = [Key("emmc_ext4", str(n), "write_throughput") for n in range(40)]
    board, random = Board(), np.random.default_rng(8)
    for number in range(41):
        off = {12: keys[20:23], 25: keys[10:13], 40: keys[:3]}.get(number, ())
        told = board.night(
            {key: (50 if key in off else 100) * np.exp(0.01 * random.standard_normal()) for key in keys}
        )
    for key in keys[:3]:
        assert told[key].outcome in (Outcome.WORSE, Outcome.UNKNOWN)
        assert told[key].reason is not Reason.NOISE
    assert {told[key].reason for key in keys[3:]} <= {Reason.OTHER, Reason.NOISE}


@pytest.mark.parametrize(("size", "found", "back"), [(8, 1, 1), (4, 3, 2), (1.2, 10, 6)])
def test_an_alarm_by_odd_nights_ends_as_soon_as_the_figure_is_back(size, found, back):
    spread = 0.02
    values = [100.0] * 30 + [100 * np.exp(spread * size)] * found + [100.0] * back
    names = [f"n{number:03}" for number in range(len(values))]
    share = float(np.expm1(spread * size))
    alarm = MetricAlarm(AlarmState.OPEN, "n030", "n030", "n029", found, 100.0, share, spread=spread)
    assert life.followed(alarm, values, names, better=False).state is AlarmState.RECOVERED
