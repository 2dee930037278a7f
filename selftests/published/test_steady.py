"""Published figures that their board's other releases show to be wrong."""

import pytest
from evmperf_guides import artefacts

from evmperf.judge import judge, nights, singles, trends
from evmperf.judge.published import record, scatter, source
from evmperf.judge.published.declared import AGAIN
from evmperf.measure.runs.history import StoredRun
from evmperf.model.figures import Figure, Key
from evmperf.model.results import Published, Result, Status
from evmperf.model.run import Run
from selftests.published.test_artefacts import figures

KEY = Key("emmc_ext4_fio_1g", "4k", "write_throughput")
STEADY = {(n,): (f"{n}.00", "MB/s", 53.0 + n / 10) for n in range(1, 6)}


@pytest.mark.parametrize(
    ("mean", "said"),
    [
        (53.9, ""),
        (30.0, ""),
        (5.32, "decimal point"),
        (0.536, "decimal point"),
        (12.0, "53.3 MB/s in"),
        (400.0, "53.3 MB/s in"),
        (0.0, "53.3 MB/s in"),
    ],
)
def test_a_figure_far_off_a_steady_history_is_doubtful(mean, said):
    why = artefacts.out_of_line(mean, "MB/s", STEADY, (9,))
    assert bool(why) == bool(said)
    assert said in why


@pytest.mark.parametrize(
    "series",
    [
        {},
        dict(list(STEADY.items())[:2]),
        {(n,): (str(n), "MB/s", value) for n, value in enumerate((53.0, 20.0, 90.0, 53.0))},
        {time: (name, "KiB/s", value) for time, (name, _, value) in STEADY.items()},
    ],
)
def test_a_history_that_is_short_unsteady_or_of_another_unit_tells_nothing(series):
    assert artefacts.out_of_line(1.0, "MB/s", series, (9,)) == ""


def test_a_release_is_no_witness_for_itself():
    series = dict(list(STEADY.items())[:3])
    assert artefacts.out_of_line(1.0, "MB/s", series, (1,)) == ""


def one(mean, count=0, doubt=""):
    cells = () if count else (Published(KEY.metric, "MB/s", mean, doubt=doubt),)
    result = Result(KEY.benchmark, 0, "emmc", KEY.case, {}, "full", Status.MEASURED, (), published=cells)
    return {KEY: Figure(KEY, "MB/s", mean, None, None, None, count, 0, "", result)}


RUN = Run("a", "x1-evm", "full", os="Linux", release="9.00")


def test_only_published_figures_are_doubted_for_their_history():
    others = ("x1-evm", {KEY: STEADY}, "9.00")
    assert set(artefacts.doubts(one(5.3), *others)) == {KEY}
    assert artefacts.doubts(one(5.3, count=3), *others) == {}


def test_no_verdict_builds_on_a_doubtful_figure():
    other = Run("b", "x1-evm", "full", os="Linux", release="10.00")
    baseline = {KEY: (other, one(53.0)[KEY])}
    (verdict,) = singles.against_figures(
        judge.Subject(RUN, one(5.3, doubt="a decimal point may be lost")), baseline
    )
    assert verdict.outcome is judge.Outcome.NOT_JUDGED
    assert "decimal point" in verdict.why


@pytest.mark.parametrize(
    ("benchmark", "rows", "doubted"),
    [
        ("mmcsd_ext4", {"_4k__read_throughput": 160.0}, {"4k read_throughput"}),
        ("mmcsd_ext4", {"_4k__read_throughput": 90.0}, set()),
        ("stream", {"_copy__perf": 3300.0, "_add__perf": 3100.0}, {"copy perf"}),
        ("eth_cpsw_tcp_bidir", {"_x__throughput": 0.02, "_x__cpu_load": 81.0}, {"x throughput"}),
        ("eth_cpsw_tcp_bidir", {"_x__throughput": 940.0, "_x__cpu_load": 81.0}, set()),
        ("stream", {"_add__perf": 1.0, f"_add{AGAIN}__perf": 2.0}, {"add perf", f"add{AGAIN} perf"}),
    ],
)
def test_what_a_bus_a_load_or_a_second_print_show(benchmark, rows, doubted):
    known = figures(benchmark, **rows)
    unit = "Mbit/s" if benchmark.startswith("eth") else "MB/s"
    known = {key: Figure(**{**vars(f), "unit": unit}) for key, f in known.items()}
    found = artefacts.doubts(known, "am64xx-hsevm")
    assert {f"{key.case} {key.metric}" for key in found} == doubted


def test_the_record_is_read_once_for_a_board():
    board = record.entries()[0].board
    assert scatter.history(board, "Linux") is scatter.history(board, "Linux")


def test_no_trend_builds_on_a_doubtful_figure():
    runs = source.PublishedRuns().runs("am62xx_sk-fs")
    trend = trends.of_nights(nights.nights(runs)).trends[KEY]
    doubtful = [point for point in trend.points if point.other]
    assert [point.value for point in doubtful] == [5.32]
    assert "decimal point" in doubtful[0].other
    assert doubtful[0] not in trend.alike


def test_a_trend_of_which_every_figure_is_doubtful_is_shown_and_not_judged():
    boards: dict[str, list[StoredRun]] = {}
    for entry in source.PublishedRuns().runs():
        boards.setdefault(entry.run.board, []).append(entry)
    of_boards = [trends.of_nights(nights.nights(runs)).trends for runs in boards.values()]
    found = [trend for board in of_boards for trend in board.values() if trend.doubt]
    assert found
    assert all(trend.alike and trend.verdict is None for trend in found)
