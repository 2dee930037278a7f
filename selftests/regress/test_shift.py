"""The test against a history: what it holds, on noise that is made (one lab each; the shares over
many labs: `python -m selftests.speed verdicts`).
"""

import numpy as np
import pytest

from evmperf.judge import nightly, shift
from evmperf.judge.causes import causes
from evmperf.model.figures import Key
from evmperf.model.results import Direction
from evmperf.model.run import Run
from evmperf.model.verdict import Outcome, Reason, Verdict
from selftests.instruments.noise import CV, KINDS

_OFF = (Reason.NOISE, Reason.ODD)


def made(random, metrics, nights, kind="normal, 2 %"):
    """Figures around 100 of a lab in which nothing changes, a row a metric."""
    return 100 * (1 + np.array([KINDS[kind](random, nights) for _ in range(metrics)]))


def judged(values, alike=0):
    """Verdicts on the last night by those before, and their causes."""
    runs = [Run(f"night-{number:03}", "board", "full") for number in range(values.shape[1])]
    series = [
        nightly.JudgedSeries(
            Verdict(Key(f"table-{n % 40}", str(n), "time"), Outcome.SAME, "s", Direction.HIGHER, last),
            past,
            [run.id for run in runs],
        )
        for n, (*past, last) in enumerate(values.tolist())
    ]
    found = nightly.latest(series, alike=alike)
    return found, causes(found, runs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_of_many_spreads_is_found_whatever_the_noise(kind):
    values = made(np.random.default_rng(4), 60, 43, kind)
    values[3, 40:] *= 0.6
    verdicts, causes = judged(values)
    assert verdicts[3].outcome is Outcome.WORSE
    assert any(verdicts[3].key in cause.members for cause in causes)


@pytest.mark.parametrize("odd", [0.5, 2.0])
@pytest.mark.parametrize("night", [2, 12, 25])
def test_one_odd_night_hides_no_step_of_five_spreads(odd, night):
    values = made(np.random.default_rng(night), 1, 33)
    values[0, night] *= odd
    for last, step in ((31, 0.9), (33, 0.9), (31, 0.5), (33, 0.5)):
        there = values[:, :last].copy()
        there[0, 30:] *= step
        ((verdict,), _) = judged(there)
        assert verdict.outcome in (Outcome.WORSE, Outcome.UNKNOWN)
        assert verdict.outcome is Outcome.WORSE or verdict.suspect or verdict.reason in _OFF


def test_who_drifts_is_found_by_the_oldest_nights():
    values = made(np.random.default_rng(6), 60, 120)
    values[7, 30:] *= 1 - 0.0005 * np.arange(1, 91)
    found = shift.judge([list(map(float, row)) for row in values], worse=[-1] * 60)
    assert found[7].p < shift.LEVEL / 60
    assert found[7].slow
    assert found[7].off == pytest.approx(-0.0325, abs=0.015)


def test_what_a_metric_did_twice_before_is_its_habit():
    values = made(np.random.default_rng(7), 60, 40)
    for night in (10, 20, 39):
        values[5, night] *= 0.7
    verdicts, _ = judged(values)
    assert verdicts[5].outcome is Outcome.UNKNOWN


def test_what_is_slow_as_a_whole_is_the_boards_unless_something_known_began_with_it():
    values = made(np.random.default_rng(8), 60, 43)
    values[:, 40:] *= 0.8
    tonight = values[:, :41]
    assert all(verdict.outcome is Outcome.WORSE for verdict in judged(tonight)[0])
    (cannot,) = {verdict.outcome for verdict in judged(tonight, alike=1)[0]}
    assert cannot is Outcome.UNKNOWN
    assert all(verdict.suspect for verdict in judged(tonight, alike=1)[0])
    assert all(verdict.outcome is Outcome.WORSE for verdict in judged(values, alike=3)[0])


def test_nights_on_which_the_board_was_slow_hide_no_loss_of_a_night_on_which_it_is_not():
    values = made(np.random.default_rng(9), 60, 41)
    values[:, [12, 20, 28]] *= 0.75
    values[3, 40] *= 0.7
    verdicts, _ = judged(values, alike=1)
    assert [v.key.case for v in verdicts if v.outcome is Outcome.WORSE] == ["3"]
    values[:, 40] *= 0.97  # tonight the others are slow, too
    verdicts, _ = judged(values, alike=1)
    assert not [v for v in verdicts if v.outcome is Outcome.WORSE]


@pytest.mark.parametrize(("odd_nights", "decided"), [([25], True), ([18, 25], False)])
def test_one_night_like_no_other_hides_no_loss_of_ten_metrics(odd_nights, decided):
    values = made(np.random.default_rng(9), 60, 41)
    for number, night in enumerate(odd_nights):
        values[20 + 15 * number : 35 + 15 * number, night] *= 0.6
    values[:10, 40] *= 0.7
    verdicts, _ = judged(values)
    assert {v.outcome is Outcome.WORSE for v in verdicts[:10]} == {decided}
    assert not [v for v in verdicts[10:] if v.outcome is Outcome.WORSE]


def test_nights_of_a_slow_board_hide_no_loss_of_three_nights():
    values = made(np.random.default_rng(9), 60, 43)
    values[:, [5, 12, 20, 28, 33]] *= 0.93
    values[3, 40:] *= 0.93
    verdicts, _ = judged(values, alike=1)
    assert [v.key.case for v in verdicts if v.outcome is Outcome.WORSE] == ["3"]


@pytest.mark.parametrize("after", [1, 5, 9, 12, 17, 25])
def test_a_step_that_nobody_judged_is_found_until_it_is_a_level_of_sixteen_nights(after):
    values = made(np.random.default_rng(4), 60, 60 + after)
    values[3, 60:] *= 0.5
    (*_, verdict), _ = judged(values[:4])
    assert (verdict.outcome is Outcome.WORSE) is (after < 16)


def test_what_tonight_does_not_bear_out_is_no_suspicion():
    values = made(np.random.default_rng(5), 60, 32)
    values[3, 30] *= 0.6
    verdicts, _ = judged(values)
    assert verdicts[3].outcome is not Outcome.WORSE
    assert not verdicts[3].suspect


def test_the_same_is_never_said_of_noise_that_hides_the_margin():
    values = made(np.random.default_rng(8), 60, 31)
    values[0] = 100 * (1 + 5 * CV * np.random.default_rng(9).standard_normal(31))
    verdicts, _ = judged(values)
    assert verdicts[0].outcome is Outcome.UNKNOWN
    assert verdicts[0].reason is Reason.NOISE


def test_equal_figures_zeros_and_short_histories_are_judged():
    short = [5.0] * 5 + [5.0]
    zeros = [0.0] * 29 + [0.0]
    signs = [float(n % 3 - 1) for n in range(30)]
    found = shift.judge([short, zeros, signs, [1e-9] * 30, [1e300] * 12])
    assert all(0 <= one.p <= 1 for one in found)
    assert found[0].p > 0.5
