"""Arithmetic of cells and verdicts, evidence, distributions; facts of a run; shell texts of files."""

import json
import math
import random
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from evmperf.commands.cli.main import main
from evmperf.model import anytime, distributions, ended
from evmperf.model.errors import Kind
from evmperf.model.facts import Facts
from evmperf.model.results import Failure, Status
from evmperf.model.run import Run
from evmperf.model.shelltext import ShellTexts
from evmperf.model.stats import outliers, rounded, summarise
from selftests.support import spools

figures = st.floats(-1e12, 1e12, allow_nan=False)


@given(st.integers(-(10**9), 10**9), st.integers(0, 4))
def test_every_exact_half_is_rounded_away_from_zero(steps, decimals):
    value = float(Decimal(steps * 10 + 5).scaleb(-decimals - 1))  # half a step above so many steps
    text = rounded(value, decimals)
    assert int(text.replace(".", "")) == (steps + 1 if steps >= 0 else steps)


@given(figures, st.integers(0, 6))
def test_rounding_is_within_half_a_step_and_has_so_many_decimals(value, decimals):
    text = rounded(value, decimals)
    assert abs(Decimal(text) - Decimal(repr(value))) <= Decimal(5).scaleb(-decimals - 1)
    assert len(text.partition(".")[2]) == decimals


@given(st.lists(figures, min_size=1, max_size=40))
def test_a_summary_counts_all_and_its_mean_lies_between_its_bounds(values):
    cell = summarise(values)
    assert (cell.count, cell.low, cell.high) == (len(values), min(values), max(values))
    reach = 1e-9 * max(abs(cell.low), abs(cell.high))
    assert cell.low - reach <= cell.mean <= cell.high + reach
    assert cell.outliers == sum(outliers(values))


def test_nothing_cannot_be_summarised():
    with pytest.raises(ValueError, match="at least one"):
        summarise([])


@given(st.lists(figures, max_size=4))
def test_up_to_four_values_have_no_outliers(values):
    assert outliers(values) == [False] * len(values)


@given(figures, st.integers(5, 30))
def test_equal_values_have_no_outliers(value, count):
    assert not any(outliers([value] * count))


@given(st.lists(figures, min_size=5, max_size=40), st.randoms(use_true_random=False))
def test_an_outlier_is_marked_wherever_it_stands(values, random):
    marked = sorted(zip(values, outliers(values), strict=True))
    random.shuffle(values)
    assert sorted(zip(values, outliers(values), strict=True)) == marked


@given(st.lists(st.floats(10, 11), min_size=7, max_size=30), st.sampled_from([-100.0, 100.0]))
def test_a_value_far_out_is_marked_and_the_others_are_kept(values, far):
    assert outliers([*values, far])[-1]
    assert summarise([*values, far]).count == len(values) + 1


def test_the_fences_are_three_interquartile_ranges_out():
    # 1..9: quartiles 3 and 7, range 4, fences -9 and 19; a tenth value moves them a little
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert outliers([*values, 19.0])[-1] is False
    assert outliers([*values, 19.1])[-1] is True


def test_without_values_there_is_no_evidence():
    assert anytime.evidence([]) == pytest.approx(1.0)
    assert anytime.evidence([0.3], floor=0.001) < 2


def test_evidence_is_fair_when_nothing_changed():
    # An e-value's mean is at most 1: a fair bet. Coins are the case that can be added up exactly.
    flips = [[1.0 if number >> bit & 1 else -1.0 for bit in range(10)] for number in range(1 << 10)]
    fair = sum(anytime.signs(values) for values in flips) / len(flips)
    assert fair == pytest.approx(1.0)


def test_students_evidence_is_fair_for_normal_noise():
    source = random.Random(5)
    values = [anytime.student([source.gauss(0, 1) for _ in range(4)]) for _ in range(40000)]
    # Its tail is long: what is above 20 happens rarely, and is checked by its own bound.
    assert sum(value >= 20 for value in values) / len(values) < 0.05
    assert sum(min(value, 20) for value in values) / len(values) < 1.0


def test_the_interval_ends_where_the_evidence_says_so():
    values = [0.05, 0.03, 0.06, 0.04, 0.07, 0.02]
    low, high = anytime.interval(values)
    assert low < 0.045 < high
    assert anytime.evidence(values, low) >= 1 / anytime.ALPHA * 0.99
    assert anytime.evidence(values, high) >= 1 / anytime.ALPHA * 0.99
    assert anytime.evidence(values, 0.9 * low + 0.1 * 0.045) < 1 / anytime.ALPHA


def test_the_means_interval_is_students_evidence_solved():
    values = [10.1, 9.8, 10.3, 10.0, 9.9]
    low, high = anytime.mean_interval(values)
    for edge in (low, high):
        assert anytime.student(values, edge) == pytest.approx(1 / anytime.ALPHA)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_too_few_values_bound_nothing(count):
    assert anytime.interval([1.0] * count, floor=0.01) == (-math.inf, math.inf)
    assert anytime.mean_interval([1.0] * count, floor=0.01) == (-math.inf, math.inf)


def test_equal_values_do_not_mean_that_there_is_no_noise():
    low, high = anytime.interval([0.05] * 5, floor=0.001)
    assert 0.04 < low < 0.05 < high < 0.06


def test_one_odd_value_does_not_move_the_centre():
    assert anytime.centre([1.0, 1.1, 0.9, 1.0, 50.0]) == pytest.approx(1.05)
    with pytest.raises(ValueError, match="empty data"):
        anytime.centre([])


@pytest.mark.parametrize(
    ("evidences", "named"),
    [
        ([], []),
        ([19.0], [False]),
        ([20.0], [True]),
        ([20.0, 1.0], [False, False]),  # two metrics: twice the evidence
        ([40.0, 1.0], [True, False]),
        ([20.0, 20.0], [True, True]),  # unless both changed
        ([1.0, 70.0, 25.0, 25.0], [False, False, False, False]),
        ([1.0, 70.0, 40.0, 30.0], [False, True, True, True]),
    ],
)
def test_many_metrics_need_more_evidence_each(evidences, named):
    assert anytime.discoveries(evidences) == named


DEVIATIONS = np.concatenate([-np.logspace(-6, 1.5, 60), [0.0], np.logspace(-6, 1.5, 60)])
SHARES = np.concatenate([np.logspace(-14, -0.31, 50), [0.5], 1 - np.logspace(-8, -0.31, 30)])


@pytest.mark.parametrize("name", ["ndtr", "ndtri"])
def test_normal(name):
    at = DEVIATIONS if name == "ndtr" else SHARES
    expected = getattr(special, name)(at)
    assert getattr(distributions, name)(at) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 8, 30, 99, 500])
def test_student(degrees):
    expected = 2 * special.stdtr(degrees, -np.abs(DEVIATIONS))
    found = [distributions.student(degrees, one) for one in DEVIATIONS]
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-11)


def test_ends():
    assert list(distributions.ndtri([0, 1])) == [-np.inf, np.inf]
    assert np.isnan(distributions.ndtri(np.nan))


OLD = sorted((Path(__file__).parents[1] / "data").rglob("run.json"))


@pytest.mark.parametrize("file", OLD, ids=lambda file: file.parent.name)
def test_an_old_run_is_written_as_it_was_read(file):
    said = json.loads(file.read_text())
    again = Run.from_dict(said).to_dict()
    assert again["facts"] == said["facts"]
    assert said["facts"]["kernel"] == Run.from_dict(said).facts.kernel


def test_what_is_unknown_or_of_another_type_is_kept_and_not_believed():
    said = {"kernel": "6.12", "cpus": "four", "other": 1, "rack": ["b", 3], "virtual": False}
    facts = Facts.from_dict(said)
    assert (facts.kernel, facts.cpus, facts.virtual) == ("6.12", None, False)
    assert facts.other == {"cpus": "four", "other": 1, "rack": ["b", 3]}
    assert facts.to_dict() == said


def test_later_facts_go_before_earlier_ones():
    facts = Facts(kernel="6.12", cpus=4) | Facts.from_dict({"kernel": "6.18", "rack": "b3"})
    assert facts.to_dict() == {"kernel": "6.18", "cpus": 4, "rack": "b3"}


BUSY = {"cpus": 2, "found": {"load": "27.10", "uptime_s": "5000"}}


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        (BUSY, ["load 27.1 on 2 CPUs"]),
        ({"cpus": 8, "found": {"load": "0.31"}}, []),
        ({"host_load": 5.0}, ["5.0 processes a processor", "boot times among them"]),
        ({"host_load": 5.0, "virtual": True}, ["virtual board had to wait"]),
        ({"host_load": 1.2, "found": {"load": "1e9999"}}, []),
        (BUSY | {"host_load": 2.0}, ["27.1", "2.0 processes"]),
        ({}, []),
    ],
)
def test_what_was_busy_is_said(facts, says):
    busy = Facts.from_dict(facts).busy
    assert bool(busy) == bool(says)
    assert all(words in busy for words in says)


def test_report_why_and_show_say_it_first(tmp_path, capsys):
    run = spools.a_run(1, id="evm-1", facts=BUSY)
    spools.write(tmp_path, run, [spools.a_result(run, 0)])
    says = "load 27.1 on 2 CPUs"
    assert main(["why", "last", "--results", str(tmp_path)]) == 0
    assert says in capsys.readouterr().out.splitlines()[0]
    assert main(["show", "last", "--results", str(tmp_path)]) == 0
    assert says in capsys.readouterr().out.partition("\n\n")[0]
    assert main(["show", "--report", "--results", str(tmp_path)]) == 0
    header = (tmp_path / "evm-1" / "report.html").read_text().partition("<header>")[2]
    assert header.index("</h1>") < header.index(says) < header.index('class="counts"')


def test_the_first_failure_of_a_case_is_named_with_its_cycle():
    run = spools.a_run(1)
    failures = tuple(Failure(Kind.BOARD, "no prompt", f"cycle {n}") for n in (5, 12))
    result = spools.a_result(run, 0, status=Status.PARTIAL, failures=failures)
    sentence = ended.of("evm", [result], 1).sentence
    assert "0 of 1 case measured on evm, 1 in part" in sentence
    assert "cycle 5: no prompt (board)" in sentence


TEXTS = """\
#: first
# For readers only.
if [ $# = 1 ]; then
  echo "@name" "$@@";
fi;

#: second
@first; cd @{place}x
"""


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "module.sh").write_text(TEXTS)
    return ShellTexts(str(tmp_path / "module.py"))


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("first", {"name": "a b"}, 'if [ $# = 1 ]; then echo "a b" "$@"; fi'),
        ("second", {"name": "n", "place": "/"}, 'if [ $# = 1 ]; then echo "n" "$@"; fi; cd /x'),
        ("second", {"first": ":", "place": "@name"}, ":; cd @namex"),
    ],
)
def test_a_text_is_one_line_with_its_values_and_other_texts_of_its_file(texts, name, given, text):
    assert texts(name, **given) == text


def test_a_value_that_is_missing_is_an_error(texts):
    with pytest.raises(KeyError, match="name"):
        texts("first")
