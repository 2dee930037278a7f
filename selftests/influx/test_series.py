"""How many series InfluxDB has to hold, counted in the lines that are written."""

from evmperf.measure.runs import spool
from evmperf.model.records import VerdictRecord
from evmperf.publish.influx.lines import RunLines
from selftests.support import spools

BOARDS = 50
MOST = 1_000_000
"""What one server of this kind holds in memory."""


def series(folder, release, os):
    """The series of a board's run of the whole catalogue, with verdicts and a boot."""
    more = {"board": "evm", "os": os, "release": release, "kind": "nightly"}
    written = spools.of_catalogue(folder, id=f"{release}-{os}", **more)
    lines, results = RunLines(spool.read_run(written)), spool.read_results(written)
    verdicts = {
        VerdictRecord(result.benchmark, result.case, sample.metric, result.driver, "same", "", "last:30")
        for result in results
        for sample in result.samples
    }
    written = [line for record in (*results, *verdicts, spools.FAILED_BOOT) for line in lines.of(record)]
    # Measurement and tags stand before the first space that is not escaped.
    return {line.replace("\\ ", "_").split(" ", 1)[0] for line in (*written, lines.run())}


def test_twenty_years_of_fifty_boards_stay_below_a_million_series(tmp_path):
    first = series(tmp_path, "11.00", "Linux")
    assert len(first) > 2000
    both = first | series(tmp_path, "11.00", "RT-linux")
    later = both | series(tmp_path, "11.01", "Linux") | series(tmp_path, "11.01", "RT-linux")
    assert later == both  # a release brings none
    assert BOARDS * len(both) < MOST
