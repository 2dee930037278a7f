"""From the spool into a real InfluxDB: everything, once, whatever is sent how often."""

import itertools
import json
import re

import msgspec
import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evmperf.measure.runs.history import SpoolFolder
from evmperf.measure.runs.spool import Spool
from evmperf.model.anytime import half_width
from evmperf.model.records import UnknownRecord
from evmperf.model.results import Published
from evmperf.publish.influx.lines import Lines
from evmperf.publish.influx.push import REFUSED, RunPush, progress
from evmperf.publish.influx.reader import InfluxRuns
from selftests.support import runs, spools
from selftests.support.influxd import points


def a_case(generator, count):
    """The first row of a table on disk."""
    return itertools.islice(runs.results(generator, benchmarks=("emmc_ext4",), count=count), 1)


def push(store, folder, again=False):
    return RunPush.of(store, folder, again=again).send()


def counted(folder):
    """Points that the bucket must hold for a run, counted without the code under test."""
    total = 1  # the run
    for line in (folder / "results.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["record"] == "result":
            total += 1 + len(record.get("samples", ()))
        elif record["record"] == "boot":
            total += len(record["marks"]) or 1
    return total


def test_a_run_of_the_virtual_evm_arrives_whole(bucket, store, tmp_path):
    folder = spools.recorded(tmp_path)
    pushed = push(store, folder)
    assert pushed.complete
    assert not pushed.refused
    assert points(bucket) == counted(folder)


def test_two_machines_pushing_the_same_run_change_nothing(bucket, store, tmp_path):
    push(store, spools.recorded(tmp_path / "one"))
    before = points(bucket)
    push(store, spools.recorded(tmp_path / "two"))
    assert points(bucket) == before


def test_what_was_sent_is_not_sent_again_unless_asked(store, tmp_path):
    folder = spools.recorded(tmp_path)
    first = push(store, folder)
    second = push(store, folder)
    assert first.points > 100
    assert second.points == 1  # the run's


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
def test_no_text_breaks_a_line(store, tmp_path_factory, texts, value):
    """Whatever stands in a name, the server takes the lines and gives the same number back."""
    folder = tmp_path_factory.mktemp("odd")
    case, release, message = texts
    run = spools.a_run(board=folder.name, release=release, outcome=message, lab=case)
    failure = spools.Failure(spools.Kind.TOOL, message, message)
    spools.write(folder, run, [spools.a_result(run, 0, [value], case=case, failures=(failure,))])
    assert push(store, folder / run.id).refused == 0
    (stored,) = InfluxRuns(store).runs(run.board)
    (result,) = stored.results()
    assert result.values("write_throughput") == [value]
    assert result.failures == (failure,)
    assert stored.run.outcome == re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", " ", message)


def test_samples_of_one_time_stay_apart(bucket, store, tmp_path):
    run = spools.a_run()
    same = tuple(spools.Sample("boot_time", n, "s", n, run.started_ns) for n in range(20))
    spools.write(tmp_path, run, [spools.a_result(run, samples=same)])
    push(store, tmp_path / run.id)
    assert points(bucket, "sample") == 20


def test_a_killed_run_goes_out_as_it_is(bucket, store, tmp_path):
    run = spools.a_run(ended_ns=0, os="", outcome="")
    folder = spools.write(tmp_path, run, [spools.a_result(run, 0)])
    with (folder / "results.jsonl").open("ab") as file:
        file.write(b'{"schema": 1, "record": "resu')
    assert push(store, folder).complete
    assert points(bucket, "sample") == 2
    (stored,) = InfluxRuns(store).runs(run.board)
    assert "not ended" in stored.run.outcome


def test_records_added_after_the_end_are_sent(bucket, store, tmp_path):
    run = spools.a_run()
    folder = spools.write(tmp_path, run, [spools.a_result(run, 0)])
    push(store, folder)
    spools.judge(folder, "worse", "by 20 %", -0.2)
    assert push(store, folder).complete
    assert points(bucket, "verdict") == 1
    assert progress(folder)[bucket.key].offset == (folder / "results.jsonl").stat().st_size


def test_a_later_verdict_replaces_the_one_before(bucket, store, tmp_path):
    """In its own point and in the run's counts, from which the alert is raised."""
    run = spools.a_run()
    folder = spools.write(tmp_path, run, [spools.a_result(run, 0)])
    for word, other in (("worse", "same"), ("same", "worse")):
        spools.judge(folder, word, f"it is {word}")
        assert push(store, folder).complete
        assert stored_values(store, "verdict", "verdict") == [word]
        assert stored_values(store, "verdict", "reason") == [f"it is {word}"]
        assert stored_values(store, "run", f"verdict_{word}") == [1]
        assert stored_values(store, "run", f"verdict_{other}") == [0]


def stored_values(store, measurement, field):
    """All values of a field, whatever their time."""
    flux = """
from(bucket: params.bucket) |> range(start: 0)
|> filter(fn: (r) => r._measurement == params.measurement and r._field == params.field)
"""
    rows = store.query(flux, measurement=measurement, field=field)
    return [row.get_value() for row in rows]


def test_records_that_say_nothing_of_measuring_are_left_alone():
    run = spools.a_run()
    assert list(Lines(run).of(UnknownRecord(line=1, reason="no table", text="x"))) == []


def test_a_case_that_was_measured_over_says_how_well_it_is_known():
    (found,) = list(a_case(np.random.default_rng(1), count=6))
    line, *_ = Lines(spools.a_run()).of(replace(found, conditions={"repeat": "6 rounds"}))
    width = half_width(found.values("write_throughput"))
    assert ',repeat="6 rounds",' in line
    assert f",known_write_throughput={width!r}," in line
    plain, *_ = Lines(spools.a_run()).of(found)
    assert "repeat=" not in plain
    assert "known_" not in plain


def test_a_guide_keeps_its_bounds(bucket, store, tmp_path):
    run = spools.a_run(kind="guide", started_ns=0, ended_ns=0)
    cell = Published("write_throughput", "MB/s", 9.0, low=8.5, line=7)
    Spool(tmp_path, run).append(spools.a_result(run, values=(), started_ns=0, published=(cell,)))
    assert push(store, tmp_path / run.id).points == 3
    flux = 'from(bucket: params.bucket) |> range(start: 0) |> filter(fn: (r) => r._field == "low")'
    assert [row.get_value() for row in store.query(flux)] == [8.5]


def test_runs_of_no_lab_and_no_release_go_out(store, tmp_path):
    for number in range(2):
        run = spools.a_run(number, lab="", release="")
        assert push(store, spools.write(tmp_path, run, [])).complete


def test_one_bad_point_costs_only_itself(bucket, store, tmp_path):
    run = spools.a_run()
    cases = [spools.a_result(run, n, [1.0] * 50) for n in range(5)]
    cases[2] = spools.with_a_bad_point(run, 2)
    folder = spools.write(tmp_path, run, cases)
    pushed = push(store, folder)
    assert (pushed.refused, pushed.complete) == (1, True)
    assert points(bucket, "sample") == 4 * 50 + 2
    kept = (folder / REFUSED).read_text()
    assert "m" * 70_000 in kept
    assert "unable to parse" in kept


def test_a_point_of_another_type_costs_only_itself(bucket, store, tmp_path):
    store.write([f'sample,board=b,benchmark=emmc_ext4 value="text" {spools.START_NS}'])
    run = spools.a_run()
    folder = spools.write(tmp_path, run, [spools.a_result(run, n) for n in range(5)])
    pushed = push(store, folder)
    assert pushed.complete
    assert points(bucket, "result") == 5
    assert pushed.refused == 10
    assert (folder / REFUSED).read_text().count("field type conflict") == 10
