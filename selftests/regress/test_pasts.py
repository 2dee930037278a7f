"""What of a board's past counts: alarms that went away, confirmed changes, boards of one kind."""

from dataclasses import replace

import pytest

from evmperf.judge import against
from evmperf.judge.against import judged, wanted
from evmperf.measure.runs.history import SpoolFolder
from evmperf.model.verdict import Outcome
from selftests.support import runs

LOST = ("emmc_ext4", "102400", "write_throughput")


def night(folder, generator, number, factor=1.0, **facts):
    """A night of which one metric, or every one (a twin), is at another level; its verdict on it."""
    every = facts.pop("every", 1.0)
    found = [runs.scaled(one, every) for one in runs.results(generator, changed={LOST: factor})]
    there = runs.write(folder, found, number=number, **facts)
    judgement = judged(there, wanted("last:20"), SpoolFolder(folder))
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
    assert (verdict.outcome, verdict.closed) == (Outcome.SAME, "am64xx-hsevm-0020")
    assert "went away" in verdict.why
    assert "1 alarm went away" in judgement.sentence()
    against.keep(there, judgement)
    assert not night(tmp_path, generator, 22)[2].closed, "it is said once"


def test_an_alarm_that_is_borne_out_stays(tmp_path):
    generator = runs.history(tmp_path, nights=20)
    there, judgement, _ = night(tmp_path, generator, 20, 0.6)
    against.keep(there, judgement)
    _, judgement, verdict = night(tmp_path, generator, 21, 0.6)
    assert (verdict.outcome, verdict.closed) == (Outcome.WORSE, "")
    assert "went away" not in judgement.sentence()


def test_an_alarm_whose_change_lasted_until_it_was_the_level_did_not_go_away(tmp_path):
    generator = runs.history(tmp_path, nights=20)
    for number in range(20, 34):
        there, judgement, verdict = night(tmp_path, generator, number, 0.6)
        against.keep(there, judgement)
        assert not verdict.closed
    assert verdict.outcome is not Outcome.WORSE


def test_the_level_after_a_confirmed_change_is_the_history(tmp_path):
    generator = runs.history(tmp_path, nights=20)
    there, judgement, verdict = night(tmp_path, generator, 20, 0.6)
    confirmed = [replace(v, confirmed=True) if v.key == LOST else v for v in judgement.verdicts]
    against.keep(there, replace(judgement, verdicts=confirmed))
    _, _, verdict = night(tmp_path, generator, 21, 0.6)
    assert verdict.outcome is Outcome.NOT_COMPARABLE
    assert "confirmed" in verdict.why
    for number in range(22, 27):
        _, _, verdict = night(tmp_path, generator, number, 0.6)
    assert verdict.outcome is not Outcome.WORSE
    assert verdict.baseline == pytest.approx(60, rel=0.05)


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
