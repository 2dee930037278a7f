"""What of a board's past counts: the life of alarms, boards of one kind, levels and changes."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from evmperf.judge import against, steps, trends
from evmperf.judge.accepted import Accepted
from evmperf.judge.against import judged, parse
from evmperf.judge.nights import EarlierNight, Past
from evmperf.measure.runs.history import SpoolFolder
from evmperf.model.alarm import AlarmState, MetricAlarm
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key
from evmperf.model.results import Direction
from evmperf.model.run import Run
from evmperf.model.units import counted
from evmperf.model.verdict import Judgement, Outcome, Reason, Verdict
from evmperf.publish.report import page
from selftests.support import runs

LOST = Key("emmc_ext4", "102400", "write_throughput")


def night(folder, generator, number, factor=1.0, **facts):
    """A night of which one metric, or every one (a twin), is at another level; its verdict on it."""
    every = facts.pop("every", 1.0)
    found = [runs.scaled(one, every) for one in runs.results(generator, changed={LOST: factor})]
    there = runs.write(folder, found, number=number, **facts)
    judgement = judged(there, parse("last:20"), SpoolFolder(folder))
    return there, judgement, next(v for v in judgement.verdicts if v.key == LOST)


def test_an_alarm_that_the_next_night_does_not_bear_out_goes_away(tmp_path):
    generator = runs.history(tmp_path, nights=20)
    there, judgement, verdict = night(tmp_path, generator, 20, 0.6)
    assert verdict.outcome is Outcome.WORSE
    measured = (there / "results.jsonl").read_bytes()
    assert against.keep(there, judgement)
    assert (there / "results.jsonl").read_bytes() == measured
    assert len((there / "verdicts.jsonl").read_bytes().splitlines()) == len(judgement.verdicts)
    there, judgement, verdict = night(tmp_path, generator, 21)
    assert verdict.outcome is Outcome.SAME
    assert verdict.alarm.state is AlarmState.RECOVERED
    assert "recovered: " in verdict.why
    assert "1 alarm recovered" in judgement.sentence()
    assert judgement.exit_status is not ExitStatus.FAILED
    against.keep(there, judgement)
    assert not night(tmp_path, generator, 22)[2].alarm, "it is said once"


def test_the_page_lists_open_alarms_first_until_they_recover(tmp_path):
    generator = runs.history(tmp_path, nights=20)
    for number, factor in ((20, 0.6), (21, 0.6), (22, 1.0)):
        folder, judgement, verdict = night(tmp_path, generator, number, factor)
        against.keep(folder, judgement)
        text = page.render(folder)
        alarms = text.partition("Open alarms</h2>")[2].partition("</section>")[0]
        if factor == 1.0:
            assert "since am64xx-hsevm-0020" not in alarms
        else:
            assert f"since am64xx-hsevm-0020: 1 figure, open for {counted(number - 19, 'night')}" in alarms
            assert verdict.alarm.story() in alarms
            assert text.index("Open alarms</h2>") < text.index("Worse than the baseline</h2>")


def test_an_alarm_ends_in_nights_that_nobody_judged(tmp_path):
    """One odd night of recorded series was worse by 0.1 % for weeks where every fifth night was judged."""
    generator = runs.history(tmp_path, nights=20)
    there, judgement, verdict = night(tmp_path, generator, 20, 0.6)
    against.keep(there, judgement)
    for number in range(21, 26):
        runs.write(tmp_path, runs.results(generator), number=number)
    verdict = night(tmp_path, generator, 26)[2]
    assert (verdict.outcome, verdict.alarm.state) == (Outcome.SAME, AlarmState.RECOVERED)
    assert verdict.alarm.nights == 1


def nights_of_loss(tmp_path, count, factor=0.6, first=20):
    """Nights with a loss, each judged; the verdicts on it."""
    generator = runs.history(tmp_path, nights=first)
    told = []
    for number in range(first, first + count):
        there, judgement, verdict = night(tmp_path, generator, number, factor)
        against.keep(there, judgement)
        told.append(verdict)
    return generator, told


def test_a_loss_stays_open_with_its_date_until_it_recovers(tmp_path):
    generator, told = nights_of_loss(tmp_path, 22)
    assert {verdict.outcome for verdict in told} == {Outcome.WORSE}
    assert {verdict.alarm.since for verdict in told} == {"am64xx-hsevm-0020"}
    assert told[-1].alarm.nights == 22
    assert told[-1].alarm.good == "am64xx-hsevm-0019"
    assert "open for 22 nights" in told[-1].why
    there, judgement, verdict = night(tmp_path, generator, 42, 0.6)
    # Older than the runs that `last:20` names, and yet what an A/B has as its good side.
    good, _, _ = against.sides(there, parse("last:20"), SpoolFolder(tmp_path), judgement)
    assert good.id == "am64xx-hsevm-0019"
    # Where the runs before are gone, the loss is still there.
    told = judged(there, parse("last:10"), SpoolFolder(tmp_path)).verdicts
    assert "open for 23 nights" in next(v.why for v in told if v.key == LOST)
    there, judgement, verdict = night(tmp_path, generator, 43)
    assert verdict.reason is Reason.RECOVERING, "one night does not end an alarm of so many"
    against.keep(there, judgement)
    there, judgement, verdict = night(tmp_path, generator, 44)
    assert (verdict.outcome, verdict.alarm.state) == (Outcome.SAME, AlarmState.RECOVERED)
    against.keep(there, judgement)
    # Its nights are no history: who was well before is not better now.
    assert night(tmp_path, generator, 45)[2].outcome is Outcome.SAME


def test_a_suspected_loss_is_checked_again_with_the_run_before_it(tmp_path):
    runs.history(tmp_path, nights=6)
    folder, good = (tmp_path / f"am64xx-hsevm-000{number}" for number in (5, 4))
    alarm = MetricAlarm(AlarmState.SUSPECTED, folder.name, good=good.name, size=-0.3)
    suspected = Verdict(LOST, Outcome.UNKNOWN, "MB/s", Direction.HIGHER, alarm=alarm, reason=Reason.SUSPECTED)
    judgement = Judgement(folder.name, "am64xx-hsevm", "last:20", [suspected])
    named, _, after = against.sides(folder, parse("last:20"), SpoolFolder(tmp_path), judgement)
    assert named.id == good.name
    assert not after, "what else changed is said of what is decided"


def test_a_better_level_is_the_level_after_ten_nights(tmp_path):
    generator, told = nights_of_loss(tmp_path, 12, factor=1.5)
    assert [verdict.outcome is Outcome.BETTER for verdict in told[:3]] == [False, False, True]
    states = [verdict.alarm.state if verdict.alarm else None for verdict in told]
    assert states[9] is AlarmState.LEVEL
    assert night(tmp_path, generator, 32)[2].outcome is Outcome.WORSE


def test_what_an_ab_takes_back_is_no_alarm_of_the_next_night(tmp_path):
    generator = runs.history(tmp_path, nights=20)
    there, judgement, verdict = night(tmp_path, generator, 20, 0.6)
    taken_back = structs.replace(verdict.alarm, state=AlarmState.WITHDRAWN)
    verdicts = [replace(v, alarm=taken_back) if v.key == LOST else v for v in judgement.verdicts]
    against.keep(there, replace(judgement, verdicts=verdicts))
    assert night(tmp_path, generator, 21)[2].alarm is None


def test_only_the_board_changed():
    verdict = Verdict(LOST, Outcome.WORSE, "s", Direction.LOWER, 1.1, 1.0, control=True)
    judgement = Judgement("r", "b", "last:30", [verdict])
    assert judgement.exit_status is ExitStatus.UNDECIDED
    assert "the board changed" in judgement.sentence()
    software = replace(verdict, control=False)
    assert Judgement("r", "b", "last:30", [verdict, software]).exit_status is ExitStatus.FAILED


def test_the_level_of_a_twin_is_taken_out(tmp_path):
    generator = runs.history(tmp_path, nights=8, serial_number="one")
    for number in range(8, 20):
        twin = number % 2
        night(tmp_path, generator, number, serial_number=("one", "two")[twin], every=(1.0, 1.3)[twin])
    _, judgement, verdict = night(tmp_path, generator, 20, serial_number="one")
    assert not judgement.count(Outcome.WORSE) + judgement.count(Outcome.BETTER)
    assert verdict.baseline == pytest.approx(100, rel=0.02)
    _, judgement, verdict = night(tmp_path, generator, 21, 0.6, serial_number="one")
    assert verdict.outcome is Outcome.WORSE


def test_a_board_of_which_too_little_is_known_is_not_judged_by_its_twin(tmp_path):
    generator = runs.history(tmp_path, nights=20, serial_number="one")
    _, judgement, verdict = night(tmp_path, generator, 20, serial_number="two", every=1.3)
    assert verdict.outcome is Outcome.NOT_COMPARABLE
    assert verdict.why.endswith("serial number differs (two, not one)")
    assert not judgement.compared


def test_the_card_is_an_individual_for_the_figures_that_it_makes(tmp_path):
    cards = [[{"type": "MMC", "name": "S0J56X", "cid": cid}] for cid in ("150100", "150101")]
    generator = runs.history(tmp_path, nights=20, cards=cards[0])
    _, judgement, verdict = night(tmp_path, generator, 20, cards=cards[1])
    assert "another individual: card differs" in verdict.why
    assert {v.key.benchmark for v in judgement.verdicts if v.outcome is Outcome.SAME} == {"boot_time_mmcsd"}


KEY = Key("emmc_ext4", "102400", "write_throughput")
UNDER = {"board": "evm", "profile": "full"}
SHARED = {}
"""What is measured alike is the same object, as in `evmperf.judge.nights`."""


def nights(values, key=KEY, unit="MB/s", under=UNDER):
    alike = SHARED.setdefault(tuple(under.items()), under)
    return [
        EarlierNight(
            Run(f"night-{n:03}", "evm", "full", started_ns=n * 10**9),
            {key: Past(float(value), unit, alike, (float(value),))},
        )
        for n, value in enumerate(values)
    ]


def noisy(level, count, seed=1):
    return level * (1 + 0.01 * np.random.default_rng(seed).standard_normal(count))


def the_trend(found, marks=(), key=KEY):
    return trends.of_nights(found, marks).trends[key]


def mark(night, why="meant"):
    return Accepted("emmc_ext4/*/*", "evm", f"night-{night:03}", night * 10**9, why)


def test_a_step_is_two_levels_and_a_change_at_its_night():
    trend = the_trend(nights([*noisy(100, 40), *noisy(80, 40, 2)]))
    assert [(level.first, level.last) for level in trend.levels] == [(0, 39), (40, 79)]
    assert [level.value for level in trend.levels] == pytest.approx([100, 80], rel=0.01)
    (move,) = trend.moves
    assert (move.at, move.outcome, move.worse) == (40, Outcome.WORSE, True)
    assert move.change == pytest.approx(-0.2, abs=0.02)
    assert trend.verdict.outcome is Outcome.SAME  # ten nights and more: it is the level now


def test_the_newest_nights_have_a_verdict_before_there_is_a_level():
    trend = the_trend(nights([*noisy(100, 60), *noisy(80, 5, 2)]))
    assert trend.moves == []
    assert trend.verdict.outcome is Outcome.WORSE
    assert trend.verdict.since in {f"night-{n:03}" for n in range(60, 65)}


@pytest.mark.parametrize("count", range(8, 16))
def test_a_new_level_and_newest_figures_that_are_off_are_one_change(count):
    past = nights([*noisy(100, 60), *noisy(80, count, 2)])
    trend = the_trend(past)
    off = trend.off_since([night.run for night in past])
    assert len(trend.moves) + (off is not None) == 1


def test_the_date_of_a_change_is_that_of_the_alarm_that_was_kept():
    """A repair is none of its own."""
    found = nights([*noisy(100, 40), *noisy(90, 20, 2), *noisy(100, 20, 3)])
    for number in range(43, 61):
        state = AlarmState.OPEN if number < 60 else AlarmState.RECOVERED
        alarm = MetricAlarm(state, "night-043", "night-043", "night-042", min(number, 59) - 42, 100.0, -0.1)
        found[number] = EarlierNight(found[number].run, found[number].figures, {KEY: alarm}, True)
    trend = the_trend([EarlierNight(one.run, one.figures, one.alarms, True) for one in found])
    assert [(move.at, move.outcome) for move in trend.moves] == [(43, Outcome.WORSE)]
    assert [level.first for level in trend.levels] == [0, 43, 60]


def test_an_alarm_that_an_ab_withdrew_is_no_loss_of_the_newest_night():
    found = nights([*noisy(100, 40), 60])
    alarm = MetricAlarm(AlarmState.WITHDRAWN, "night-040", "night-040", "night-039", 1, 100.0, -0.4)
    trend = the_trend([*found[:-1], EarlierNight(found[-1].run, found[-1].figures, {KEY: alarm}, True)])
    assert (trend.verdict.outcome, trend.verdict.alarm) == (Outcome.UNKNOWN, alarm)


def test_what_check_calls_a_slow_board_is_no_loss_of_its_figures():
    keys = [Key("emmc_ext4", str(number), "write_throughput") for number in range(40)]
    rows = [nights([*noisy(100, 40, seed), 80 + 0.1 * seed], key) for seed, key in enumerate(keys)]
    found = [
        EarlierNight(
            night[0].run, {key: one.figures[key] for key, one in zip(keys, night, strict=True)}, {}, True
        )
        for night in zip(*rows, strict=True)
    ]
    assert not [one for one in trends.of_nights(found).trends.values() if one.outcome is Outcome.WORSE]


def test_noise_is_one_level():
    trend = the_trend(nights(noisy(100, 200)))
    assert (len(trend.levels), trend.moves, trend.verdict.outcome) == (1, [], Outcome.SAME)


def test_a_change_that_was_meant_is_no_alarm():
    found = nights([*noisy(100, 40), *noisy(80, 40, 2)])
    trend = the_trend(found, [mark(41, "the driver waits")])
    assert trend.moves[0].accepted.why == "the driver waits"
    assert not trend.moves[0].worse
    assert the_trend(found, [mark(20)]).moves[0].worse  # meant, but not this one


def test_nights_under_other_conditions_are_shown_and_not_compared():
    other = nights([50.0], under={**UNDER, "profile": "quick"})[0].figures[KEY]
    found = nights(noisy(100, 40))
    found[38:] = [EarlierNight(found[38].run, {KEY: other}), *nights([0.1], unit="GB/s")]
    trend = the_trend(found)
    assert [point.other for point in trend.points if point.other] == [
        "profile differs (full, not quick)",
        "unit differs (MB/s, not GB/s)",
    ]
    assert len(trend.alike) == 38
    assert len(trend.levels) == 1


def test_a_quantity_without_a_direction_changes_and_is_not_judged():
    key = Key("no_such_benchmark", "case", "figure")
    trend = the_trend(nights([*noisy(100, 40), *noisy(80, 40, 2)], key), key=key)
    assert trend.moves[0].outcome is Outcome.NOT_JUDGED
    assert trend.verdict is None


def test_changes_of_several_series_are_each_ones_own():
    moved = [*noisy(100, 30), *noisy(120, 30, 2), *noisy(90, 30, 3)]
    assert steps.changes([noisy(100, 50), moved, [1.0] * 5, [7.0] * 50]) == [[], [30, 60], [], []]


@pytest.mark.parametrize(("nights_of_twin", "left"), [(14, 44), (4, 30)])
def test_the_level_of_a_twin_is_taken_out_or_its_nights_are_not_compared(nights_of_twin, left):
    """Two boards share a name and alternate; one is 30 % faster, which is no change."""
    found = []
    for number, value in enumerate(noisy(100, 30)):
        found += nights([value], under={**UNDER, "serial number": "one"})
        if number >= 30 - nights_of_twin:
            found += nights([value * 1.3], under={**UNDER, "serial number": "two"})
    found.append(nights([100], under={**UNDER, "serial number": "one"})[0])
    ordered = [
        EarlierNight(structs.replace(night.run, id=f"night-{n:03}", started_ns=n * 10**9), night.figures)
        for n, night in enumerate(found)
    ]
    trend = the_trend(ordered)
    assert (len(trend.alike), trend.moves) == (left + 1, [])
    assert trend.verdict.outcome is not Outcome.WORSE
    ((twin, ratio),) = trend.twins.items()
    assert "serial number differs (one, not two)" in twin
    assert ratio == (pytest.approx(1 / 1.3, rel=0.02) if left == 44 else 0.0)
