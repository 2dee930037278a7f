import dataclasses

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.step import Measure
from evmperf.measure import repeats
from evmperf.measure.runner import Runner
from evmperf.model.errors import BoardError, RefusedOutput, UsageError
from evmperf.model.results import REPEATS, Case, Direction, Metric, Reading, Status
from evmperf.model.run import Run
from evmperf.model.units import Unit
from evmperf.report.table import result_rows
from evmperf.runs.spool import Spool
from selftests.support.boardfiles import fake_board
from selftests.support.fakes import LocalBench, LocalShell, failed_boot, good_boot

RATE = Metric("rate", Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, "Rate", low=1.0, high=100.0)
CASE = Case("4k")


@pytest.fixture
def measure(tmp_path):
    """A function that measures a case of a benchmark so often."""

    def measure_case(benchmark, repeat, **bench):
        board = fake_board(
            tmp_path / "fake.yaml", "boot", "emmc", boot={"medium": "sd", "max_failures": 2}
        )
        spool = Spool(tmp_path, Run("fake-1", "fake-evm", "quick"))
        runner = Runner(
            LocalBench(board, LocalShell(tmp_path / "board"), **bench), spool, "quick", [],
            repeats=repeats.parse(repeat),
        )  # fmt: skip
        return runner.measure(benchmark, benchmark.profiles["quick"].cases[0])

    return measure_case


def giving(values):
    """A benchmark whose measurements give these values, one after the other."""
    left = iter(values)

    def parse(outputs):
        value = next(left)
        if value is None:
            raise RefusedOutput("nothing")
        return [Reading("rate", value)]

    step = Measure("write", 'echo x >"$OUT/x"', 10, parse=parse)
    return Benchmark(
        name="emmc_fake", driver="emmc", title="Fake", section=("Fake",), metrics=(RATE,),
        profiles={"quick": Profile((CASE,))}, place=Place.SHELL,
        steps=lambda board, case, plan: (step,),
    )  # fmt: skip


@pytest.mark.parametrize(
    "text", ["0", "-1", "201", "until", "until:0%", "until:100%", "until:2", "until:2%/x", "x"]
)
def test_what_is_no_number_of_times(text):
    with pytest.raises(UsageError, match="until:2%"):
        repeats.parse(text)


def test_words():
    assert repeats.parse("") is None
    assert repeats.parse("5").times == 5
    assert (repeats.parse("until:2%").within, repeats.parse("until:2%").budget_s) == (0.02, 600)
    assert repeats.parse("until:0.5%/2h").budget_s == 7200


def test_so_often_is_so_many_samples_each_with_its_number(measure):
    result = measure(giving([10.0, 11.0, 12.0]), "3")
    assert result.status is Status.MEASURED
    assert [(s.repetition, s.value) for s in result.samples] == [(0, 10), (1, 11), (2, 12)]
    assert result.conditions[REPEATS] == "3: 3 times"
    assert len(set(result.raw)) == 3


def test_until_the_mean_is_known(measure):
    result = measure(giving([50.0, 50.1, 49.9, 50.05, 50.0, 49.95] * 5), "until:2%")
    assert 4 <= len(result.samples) <= 6
    assert "known within 0.02" in result.conditions[REPEATS]
    (row,) = result_rows(result)
    assert row.note.startswith("mean ± ")
    assert float(row.note.removeprefix("mean ± ").partition("%")[0]) <= 2.0


def test_noise_takes_more(measure):
    noisy = [50.0, 53.0, 47.0, 51.0, 49.0, 52.0, 48.0, 50.5, 49.5, 50.0] * 20
    assert len(measure(giving(noisy), "until:2%").samples) > 10


def test_what_stops_giving_figures_is_not_measured_on(measure):
    result = measure(giving([10.0, None, None, 10.0]), "5")
    assert result.status is Status.PARTIAL
    assert len(result.samples) == 1


def test_the_budget_ends_it():
    class Spent:
        samples = ()
        benchmark = giving([])
        case = CASE

    asked = repeats.parse("until:2%/10m")
    assert asked.enough(Spent, 5, 480.0) == ""
    assert asked.enough(Spent, 5, 510.0) == "the budget of 600 s is spent"


def test_boots_are_counted_one_by_one_and_a_failed_one_is_not_the_end(measure):
    boot_time = catalogue.benchmark("boot_time_mmcsd")
    case = dataclasses.replace(boot_time.profiles["quick"].cases[1])
    boot_time = dataclasses.replace(boot_time, profiles={"quick": Profile((case,), repeats=3)})
    boots = [good_boot(2.0), failed_boot(BoardError("panic")), good_boot(2.1), good_boot(2.2),
             good_boot(2.1)]  # fmt: skip
    result = measure(boot_time, "5", boots=boots)
    assert [s.repetition for s in result.samples if s.metric == "boot_time"] == [0, 2, 3, 4]
    assert result.status is Status.PARTIAL
