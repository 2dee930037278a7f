"""Figures that others beside them, or their board's other releases, show to be wrong."""

import itertools

import pytest
from evmperf_guides import artefacts, steady

from evmperf.judge import judge, nights, singles, trends
from evmperf.judge.published import record, scatter, source
from evmperf.judge.published.declared import AGAIN
from evmperf.measure.runs.history import StoredRun
from evmperf.model.figures import Figure, Key
from evmperf.model.results import Published, Result, Status
from evmperf.model.run import Run


def figures(benchmark, **rows):
    """Published figures by `case__metric`: a mean, or mean, low and high."""
    found = {}
    for name, value in rows.items():
        case, _, metric = name.strip("_").rpartition("__")
        key = Key(benchmark, case, metric)
        mean, low, high = value if isinstance(value, tuple) else (value, None, None)
        result = Result(benchmark, 0, "x", key.case, {}, "full", Status.MEASURED, ())
        found[key] = Figure(key, "", mean, low, high, None, 0, 0, "", result)
    return found


def doubted(known):
    return {f"{key.case} {key.metric}": why for key, why in artefacts.doubts(known, "x1-evm").items()}


@pytest.mark.parametrize(
    ("rate", "throughput", "hertz"),
    [("24000", 705590, 22050), ("24000", 1023986, 32000), ("11025", 255998, 8000), ("16000", 705593, 22050)],
)
def test_a_codec_at_another_rate_is_told_by_its_bits(rate, throughput, hertz):
    known = figures("audio_capture", **{f"_{rate}__throughput": throughput, f"_{rate}__cpu_load": 3.0})
    found = doubted(known)
    assert set(found) == {f"{rate} throughput", f"{rate} cpu_load"}
    assert f"ran at {hertz}" in found[f"{rate} throughput"].replace("22049", "22050")


def test_a_codec_at_its_rate_is_judged():
    assert not doubted(figures("audio_capture", _24000__throughput=767990, _24000__cpu_load=3.0))


CHAIN = ("rd", "wr", "rdwr", "cp", "fwr", "frd", "fcp", "bzero", "bcopy")


def test_means_of_two_operations_are_told_by_the_bounds_that_they_share():
    own = {operation: 100.0 * (number + 1) for number, operation in enumerate(CHAIN)}
    rows = {}
    for one, after in itertools.pairwise(CHAIN):
        low, high = sorted((own[one], own[after]))
        rows[f"bw_mem-{one}-1mb__perf"] = ((low + high) / 2, low, high)
    rows["bw_mem-bcopy-1mb__perf"] = own["bcopy"]
    found = doubted(figures("lmbench", **rows))
    assert len(found) == len(CHAIN) - 1
    assert "bw_mem-bcopy-1mb perf" not in found


def test_bandwidths_of_a_mended_program_are_judged():
    rows = {f"bw_mem-{one}-1mb__perf": (100.0 * n, 99.0 * n, 101.0 * n) for n, one in enumerate(CHAIN, 1)}
    assert not doubted(figures("lmbench", **rows))


def test_a_clock_that_the_loops_rule_out():
    wrong = figures(
        "dhrystone", cpu_clock__perf=400.0, dhrystone_per_second__perf=6451613.0, dhrystone_per_mhz__perf=9.2
    )
    assert set(doubted(wrong)) == {"cpu_clock perf", "dhrystone_per_mhz perf"}
    right = figures("dhrystone", cpu_clock__perf=1400.0, dhrystone_per_second__perf=6451613.0)
    assert not doubted(right)


def test_a_run_that_moved_nothing():
    row = figures("ipsec_hw", aes192__throughput=0.6, aes192__kpps=0.0, aes192__cpu_load=98.0)
    assert set(doubted(row).values()) == {"a failed run, published"}


@pytest.mark.parametrize(
    ("case", "throughput", "kpps", "payload"),
    [("64", 12.96, 90.0, 18), ("64", 46.08, 90.0, 64), ("64", 30.0, 90.0, 0), ("1518", 706.56, 60.0, 1472)],
)
def test_payloads_are_told_by_packets_and_throughput(case, throughput, kpps, payload):
    known = figures(
        "eth_cpsw_udp_egress_0loss", **{f"_{case}__throughput": throughput, f"_{case}__kpps": kpps}
    )
    key = Key("eth_cpsw_udp_egress_0loss", case, "throughput")
    assert artefacts.payload(known, key) == payload
    assert bool(doubted(known)) is (payload == 0)


@pytest.mark.parametrize(("metric", "value"), [("write_cpu_load", 7378.0), ("write_throughput", -1.0)])
def test_what_no_run_could_have_measured(metric, value):
    assert (
        "not plausible" in doubted(figures("emmc_ext4", **{f"_102400__{metric}": value}))[f"102400 {metric}"]
    )


def test_a_total_that_is_not_the_sum_of_its_rails():
    rails = {"vdd_core__power": 4.0, "vdda_1v8__power": 2.5}
    assert not doubted(figures("lpm_power_deep_sleep", **rails, Total__power=6.5))
    wrong = doubted(figures("lpm_power_deep_sleep", **rails, Total__power=7.5))
    assert wrong == {"Total power": "not the sum of its rails, 6.50"}


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
    why = steady.out_of_line(mean, "MB/s", STEADY, (9,))
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
    assert steady.out_of_line(1.0, "MB/s", series, (9,)) == ""


def test_a_release_is_no_witness_for_itself():
    series = dict(list(STEADY.items())[:3])
    assert steady.out_of_line(1.0, "MB/s", series, (1,)) == ""


def one(mean, count=0, doubt=""):
    cells = () if count else (Published(KEY.metric, "MB/s", mean, doubt=doubt),)
    result = Result(KEY.benchmark, 0, "emmc", KEY.case, {}, "full", Status.MEASURED, (), published=cells)
    return {KEY: Figure(KEY, "MB/s", mean, None, None, None, count, 0, "", result)}


RUN = Run("a", "x1-evm", "full", os="Linux", release="9.00")


def test_only_published_figures_are_doubted_for_their_history():
    assert set(steady.doubts(RUN, one(5.3), {KEY: STEADY})) == {KEY}
    assert steady.doubts(RUN, one(5.3, count=3), {KEY: STEADY}) == {}


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
    found = steady.doubts(Run("r", "am64xx-hsevm", "full", os="Linux"), known)
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
