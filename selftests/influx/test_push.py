"""From the spool into a real InfluxDB: everything, once, whatever is sent how often; in how many series, and
through its upgrade.
"""

import json
import re
import time

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evmperf.measure.runs import spool
from evmperf.measure.runs.history import SpoolFolder
from evmperf.measure.runs.spool import Spool, read_records, read_run
from evmperf.model.records import UnknownRecord, VerdictRecord
from evmperf.model.results import Published
from evmperf.publish.influx.client import Store
from evmperf.publish.influx.lines import RunLines
from evmperf.publish.influx.push import Pushed, waiting
from evmperf.publish.influx.push import push as push_all
from evmperf.publish.influx.reader import InfluxRuns
from selftests.support import runs, spools
from selftests.support.influxd import Influxd, built, points


def push(store, folder):
    (pushed,) = push_all(store, [folder])
    return pushed


def counted(folder):
    """Points that the bucket must hold for a run, counted without the code under test."""
    total = 1  # the run
    for line in (folder / "results.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["record"] == "result":
            total += 1 + len({(s["time_ns"], s["repetition"]) for s in record.get("samples", ())})
        elif record["record"] == "boot":
            total += 1
    return total


def test_a_run_of_the_virtual_evm_arrives_whole_and_once_from_two_machines(bucket, store, tmp_path):
    for machine in ("one", "two"):
        folder = spools.recorded(tmp_path / machine)
        assert push(store, folder) == Pushed(folder, counted(folder))
        assert points(bucket) == counted(folder)


def test_what_was_sent_does_not_wait_and_what_changed_does(bucket, store, tmp_path):
    run = spools.a_run()
    folder = spools.write(tmp_path, run, [spools.a_result(run)])
    push(store, folder)
    assert waiting(tmp_path, bucket) == []
    spools.judge(folder, "worse", "by 20 %", -0.2)
    assert waiting(tmp_path, bucket) == [folder]
    assert not push(store, folder).problems
    assert points(bucket, "verdicts") == 1
    assert waiting(tmp_path, bucket) == []


def test_it_comes_back_as_it_went(bucket, store, tmp_path):
    run = spools.a_run(facts={"kernel": "6.12", "uboot": "U-Boot 2025.01", "cards": [{"cid": "a"}]})
    spools.write(tmp_path, run, [spools.a_result(run, 0), spools.a_refusal(run, 1)])
    push(store, tmp_path / run.id)
    push(store, spools.recorded(tmp_path))
    for board in ("made-up", "virtual-evm"):
        (kept,) = SpoolFolder(tmp_path).runs(board)
        (stored,) = InfluxRuns(store).runs(board)
        assert stored.run == kept.run
        assert [_comparable(r) for r in stored.results()] == [_comparable(r) for r in kept.results()]


def _comparable(result):
    """A result without its raw files' names, samples in one order."""
    record = msgspec.to_builtins(result)
    samples = sorted(record.get("samples", ()), key=lambda s: (s["time_ns"], s["metric"]))
    return {**record, "samples": samples, "raw": ()}


words = st.text(min_size=1, max_size=12)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.tuples(words, words, words), st.floats(-1e18, 1e18))
@example(("case", "release", "two\nlines"), 1.0)
@example(('a,b=c d "e" \\', "\x1b[2J\x7f\\", "<!--\u2028\x00"), 1.0)
def test_no_text_breaks_a_line(store, tmp_path_factory, texts, value):
    """Whatever stands in a name, the server takes the lines and gives the same number back."""
    folder = tmp_path_factory.mktemp("odd")
    case, release, message = texts
    run = spools.a_run(board=folder.name, release=release, outcome=message, lab=case)
    failure = spools.Failure(spools.Kind.TOOL, message, message)
    spools.write(folder, run, [spools.a_result(run, 0, [value], case=case, failures=(failure,))])
    assert not push(store, folder / run.id).problems
    (stored,) = InfluxRuns(store).runs(run.board)
    (result,) = stored.results()
    assert result.values("write_throughput") == [value]
    assert result.failures == (failure,)
    assert stored.run.outcome == message


def test_samples_of_one_time_stay_apart(bucket, store, tmp_path):
    run = spools.a_run()
    same = tuple(spools.Sample("boot_time", n, "s", n, run.started_ns) for n in range(20))
    spools.write(tmp_path, run, [spools.a_result(run, samples=same)])
    push(store, tmp_path / run.id)
    assert points(bucket, "samples") == 20


def test_a_killed_run_goes_out_as_it_is(bucket, store, tmp_path):
    run = spools.a_run(ended_ns=0, lab="", os="", release="", outcome="")
    folder = spools.write(tmp_path, run, [spools.a_result(run, 0)])
    with (folder / "results.jsonl").open("ab") as file:
        file.write(b'{"schema": 1, "record": "resu')
    assert not push(store, folder).problems
    assert points(bucket, "samples") == 2
    (stored,) = InfluxRuns(store).runs(run.board)
    assert stored.run.outcome == ""


def test_a_later_verdict_replaces_the_one_before(bucket, store, tmp_path):
    """In its own point and in the run's counts, from which the alert is raised."""
    run = spools.a_run()
    folder = spools.write(tmp_path, run, [spools.a_result(run, 0)])
    for word, other in (("worse", "same"), ("same", "worse")):
        spools.judge(folder, word, f"it is {word}")
        assert not push(store, folder).problems
        assert stored_values(store, "verdicts", "verdict") == [word]
        assert stored_values(store, "verdicts", "reason") == [f"it is {word}"]
        assert stored_values(store, "runs", word) == [1]
        assert stored_values(store, "runs", other) == [0]


def stored_values(store, measurement, field):
    """All values of a field, whatever their time."""
    flux = """
from(bucket: bucket) |> range(start: 0)
|> filter(fn: (r) => r._measurement == measurement and r._field == field)
"""
    rows = store.query(flux, measurement=measurement, field=field)
    return [row["_value"] for row in rows]


def test_a_guide_keeps_its_bounds_and_what_was_not_read_of_it_is_no_point(bucket, store, tmp_path):
    run = spools.a_run(kind="guide", started_ns=0, ended_ns=0)
    cell = Published("write_throughput", "MB/s", 9.0, low=8.5, line=7)
    unread = UnknownRecord(line=1, reason="no table", text="x")
    Spool(tmp_path, run).append(spools.a_result(run, values=(), started_ns=0, published=(cell,)), unread)
    assert push(store, tmp_path / run.id).points == 2
    (stored,) = InfluxRuns(store).runs()
    (result,) = stored.results()
    assert result.published == (cell,)


def test_one_bad_point_costs_only_itself_and_is_named(bucket, store, tmp_path):
    run = spools.a_run()
    cases = [spools.a_result(run, n, [1.0] * 50) for n in range(5)]
    cases[2] = spools.with_a_bad_point(run, 2)
    pushed = push(store, spools.write(tmp_path, run, cases))
    # The sample, and its mean.
    assert len(pushed.problems) == 2
    assert all(re.search(r"made-up-0000: cannot be parsed: .*case=case\\ 2,", p) for p in pushed.problems)
    assert points(bucket, "samples", case="case 3") == 50
    assert points(bucket, "samples") == 4 * 50 + 2


def test_a_point_of_another_type_costs_only_itself(bucket, store, tmp_path):
    store.write([f'samples,board=b,benchmark=emmc_ext4 write_throughput:MB/s="text" {spools.START_NS}'])
    run = spools.a_run()
    pushed = push(store, spools.write(tmp_path, run, [spools.a_result(run, n) for n in range(5)]))
    (problem,) = pushed.problems
    assert re.search("made-up-0000: .*partial write: field type conflict: .*dropped=10", problem)
    assert points(bucket, "cases") == 5


def test_what_is_too_old_for_the_bucket_is_passed_over_and_the_rest_arrives(influxd, tmp_path):
    """Thirty nights into a bucket of seven days, a guide and a damaged run among them."""
    config = influxd.bucket(retention_s=7 * 86_400)
    now = time.time_ns() - 43_200 * 10**9
    for night in range(30):
        run = spools.a_run(night, started_ns=now - night * 86_400 * 10**9)
        spools.write(tmp_path, run, [spools.a_result(run, n) for n in range(3)])
    guide = spools.a_run(id="guide", kind="guide", started_ns=0, ended_ns=0)
    cell = Published("write_throughput", "MB/s", 50.0, line=1)
    spools.write(tmp_path, guide, [spools.a_case(published=(cell,))])
    (tmp_path / "made-up-0003" / "run.json").write_text("{")
    with Store(config) as store:
        said = list(push_all(store, waiting(tmp_path, config)))
    assert points(config, "runs") == 6
    problems = {pushed.folder.name: "; ".join(pushed.problems) for pushed in said}
    assert re.search(r"made-up-0003: is not sent: .* is damaged", problems["made-up-0003"])
    assert re.search(
        r"made-up-0008: .*partial write: dropped 10 points outside retention policy", problems["made-up-0008"]
    )
    assert not problems["made-up-0001"]
    assert waiting(tmp_path, config) == [tmp_path / "made-up-0003"]


def test_a_large_run_goes_out_in_few_requests_that_proxies_let_through(bucket, tmp_path, monkeypatch):
    requests = []
    write = Store.write
    monkeypatch.setattr(Store, "write", lambda self, lines: (requests.append(lines), write(self, lines))[1])
    run = spools.a_run()
    folder = spools.write(tmp_path, run, [spools.a_result(run, n) for n in range(2000)])
    with Store(bucket) as store:
        assert push(store, folder).points == sum(map(len, requests)) == 6001
    assert max(len("\n".join(lines)) for lines in requests) < 1_000_000
    assert len(requests) < 4


def test_a_sample_is_stored_in_few_bytes(tmp_path):
    """A sample has its tags, its figures and its case; what is constant in a run or case is with these."""
    runs.write(tmp_path, runs.results(np.random.default_rng(1), count=10), number=0)
    (folder,) = tmp_path.iterdir()
    lines = RunLines(read_run(folder))
    made = [
        line for record in read_records(folder) for line in lines.of(record) if line.startswith("samples")
    ]
    samples = sum(line.split(" ")[-2].count("=") - 2 for line in made)
    assert samples > 500
    assert sum(map(len, made)) / samples < 120


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


@pytest.mark.skipif(not (built("2.7") and built("2.10")), reason="needs both: make influxd INFLUXD=2.7")
def test_the_newer_server_reads_what_the_older_one_kept(tmp_path, monkeypatch):
    run = spools.recorded(tmp_path / "results")
    server = Influxd(tmp_path / "influxd")
    try:
        monkeypatch.setenv("INFLUXD", "2.7")
        server.start()
        server.setup()
        config = server.bucket()
        with Store(config) as store:
            push(store, run)
        sent = points(config)
        server.stop()
        monkeypatch.setenv("INFLUXD", "2.10")
        server.start()
        with Store(config) as store:
            assert [entry.run.id for entry in InfluxRuns(store).runs()] == [run.name]
            push(store, run)
        assert points(config) == sent > 0
    finally:
        server.stop()
