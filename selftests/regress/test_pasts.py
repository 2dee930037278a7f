"""What of a board's past counts: the life of alarms, boards of one kind."""

from dataclasses import replace

import pytest
from msgspec import structs

from evmperf.judge import against
from evmperf.judge.against import judged, parse
from evmperf.measure.runs.history import SpoolFolder
from evmperf.model.alarm import AlarmState, MetricAlarm
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key
from evmperf.model.results import Direction
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
