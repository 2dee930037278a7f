"""How many series InfluxDB has to hold, counted in the lines that are written."""

import pytest

from evmperf.measure.runs import spool
from evmperf.model.records import VerdictRecord
from evmperf.publish.influx.lines import RunLines
from selftests.support import spools

BOARDS = 50
MOST = 1_000_000
"""What one server of this kind holds in memory."""


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """The series of a board's run of the whole catalogue, with verdicts and a boot."""

    def of(release, os):
        folder = spools.of_catalogue(
            tmp_path_factory.mktemp("runs"), id="run", board="evm", os=os, release=release, kind="nightly"
        )
        run = spool.read_run(folder)
        lines = RunLines(run)
        found = set()
        results = spool.read_results(folder)
        verdicts = {
            VerdictRecord(result.benchmark, result.case, sample.metric, result.driver, "same", "", "last:30")
            for result in results
            for sample in result.samples
        }
        for record in (*results, *verdicts, spools.FAILED_BOOT):
            found |= {_series(line) for line in lines.of(record)}
        return found | {_series(lines.run())}

    return of


def _series(line):
    """Measurement and tags: what stands before the first space that is not escaped."""
    return line.replace("\\ ", "_").split(" ", 1)[0]


def test_twenty_years_of_fifty_boards_stay_below_a_million_series(series):
    first = series("11.00", "Linux")
    assert len(first) > 2000
    both = first | series("11.00", "RT-linux")
    later = both | series("11.01", "Linux") | series("11.01", "RT-linux")
    assert later == both  # a release brings none
    assert BOARDS * len(both) < MOST
