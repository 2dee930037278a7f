"""What a real server does wrong, and what we do wrong towards it: said clearly, nothing lost."""

import contextlib
import itertools
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from evmperf.measure.runs.spool import Spool
from evmperf.publish.influx.client import Store, StoreError
from evmperf.publish.influx.config import Config
from evmperf.publish.influx.push import PushProgress, RunPush, Sender, waiting
from selftests.support import spools
from selftests.support.influxd import ORG, TOKEN, points, running

CASES = 40


def a_folder(results, cases=CASES):
    run = spools.a_run()
    return spools.write(results, run, [spools.a_result(run, n) for n in range(cases)])


def push(config, folder, timeout_s=20.0, again=False):
    with Store(config, timeout_s) as store:
        return RunPush.of(store, folder, again=again).send()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"token": "another-token"}, r"refuses the token \(unauthorized access\).*INFLUX_TOKEN"),
        ({"bucket": "no-such"}, r"bucket 'no-such' .*'lab'.*INFLUX_BUCKET"),
        ({"org": "no-such"}, r"knows no organisation 'no-such'.*EVMPERF_INFLUX_ORG"),
        ({"url": "http://127.0.0.1:1"}, r"cannot be reached \(Connection refused\).*INFLUX_URL"),
        ({"url": "http://no-such.invalid"}, r"no-such.invalid: cannot be reached"),
    ],
)
def test_a_wrong_setting_is_named_and_nothing_is_lost(bucket, tmp_path, wrong, message):
    folder = a_folder(tmp_path)
    with pytest.raises(StoreError, match=message) as error:
        push(replace(bucket, **wrong), folder)
    assert TOKEN not in str(error.value)
    assert "another-token" not in str(error.value)
    assert push(bucket, folder).complete
    assert points(bucket, "sample") == 2 * CASES


def test_a_token_that_may_only_read(influxd, bucket, tmp_path):
    org = influxd.api("orgs")["orgs"][0]["id"]
    right = {"action": "read", "resource": {"type": "buckets"}}
    weak = influxd.api("authorizations", orgID=org, permissions=[right])["token"]
    with pytest.raises(StoreError, match=r"no right.*read and write") as error:
        push(replace(bucket, token=weak), a_folder(tmp_path))
    assert weak not in str(error.value)


def test_a_slow_server_is_given_up_and_nothing_doubles(own_influxd, tmp_path):
    """Frozen in the middle, it may still take what we gave up on: once."""
    bucket, folder = own_influxd.bucket(), a_folder(tmp_path)
    own_influxd.signal(signal.SIGSTOP)
    with pytest.raises(StoreError, match=r"no answer within 0.5 s"):
        push(bucket, folder, timeout_s=0.5)
    own_influxd.signal(signal.SIGCONT)
    assert push(bucket, folder).complete
    assert points(bucket, "sample") == 2 * CASES


@pytest.mark.influxd
def test_a_full_disk_of_the_server_is_named_and_nothing_is_lost(tmp_path):
    """A disk of 96 MB; what fills it is taken away again."""
    with running(tmp_path / "influxd", small=96 << 20) as server:
        bucket, folder = server.bucket(), a_folder(tmp_path)
        filler = Path(f"/proc/{server.pid}/root{server.folder}/filler")
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(1 << 14)):
                pass
        with pytest.raises(StoreError, match=r"disk is full .*make room"):
            push(bucket, folder)
        filler.unlink()
        # Influxd itself goes on refusing until it is started again.
        server.restart_on_small_disk()
        assert push(bucket, folder).complete
        assert points(bucket, "sample") == 2 * CASES


def test_points_beyond_what_the_bucket_keeps_do_not_go_one_by_one(influxd, tmp_path):
    with pytest.raises(StoreError, match=r"more than 100 points are refused"):
        push(influxd.bucket(retention_s=3600), a_folder(tmp_path, 500))


def test_killed_in_the_middle_and_started_again(own_influxd, tmp_path):
    """Many runs are sent while the server is killed and comes back, several times."""
    bucket, number = own_influxd.bucket(), 12
    for day in range(number):
        run = spools.a_run(day)
        spools.write(tmp_path / "results", run, [spools.a_result(run, n) for n in range(300)])
    failed = 0
    stop = threading.Event()

    def restart() -> None:
        while not stop.wait(0.3):
            own_influxd.stop()
            own_influxd.start()

    killer = threading.Thread(target=restart)
    killer.start()
    folders = itertools.cycle(sorted((tmp_path / "results").iterdir()))
    deadline = time.monotonic() + 120
    try:
        while failed < 3:
            assert time.monotonic() < deadline
            try:
                push(bucket, next(folders), again=True)
            except StoreError:
                failed += 1
    finally:
        stop.set()
        killer.join()
    for folder in waiting(tmp_path / "results", bucket.key, begun=False):
        push(bucket, folder)
    assert points(bucket, "sample") == number * 300 * 2
    assert points(bucket, "result") == number * 300
    assert points(bucket, "run") == number


class Live:
    """A run that is being measured."""

    def __init__(self, results, config, timeout_s=1.0, number=0):
        self.run = spools.a_run(number, ended_ns=0)
        self.spool = Spool(results, self.run)
        self.spool.hold()
        self.sender = Sender(config, self.spool.folder, timeout_s)
        self.spool.on_change = self.sender.wake
        self.number = 0

    def measure(self, cases):
        """Seconds that the slowest case took to get on the disk."""
        slowest = 0.0
        for _ in range(cases):
            began = time.monotonic()
            self.spool.append(spools.a_result(self.run, self.number))
            slowest = max(slowest, time.monotonic() - began)
            self.number += 1
        return slowest

    def end(self, wait_s=20.0):
        self.run.ended_ns = self.run.started_ns + 10**12
        self.spool.save()
        return self.sender.finish(wait_s)


def test_results_go_out_while_others_are_measured(bucket, tmp_path):
    live = Live(tmp_path, bucket)
    live.measure(3)
    await_(lambda: points(bucket, "result") == 3)
    live.measure(2)
    assert live.end() == f"InfluxDB {bucket.url}: 16 points sent."
    assert points(bucket, "result") == 5
    assert points(bucket, "run") == 1


def test_a_server_that_comes_back_during_the_run_gets_everything(own_influxd, tmp_path, monkeypatch):
    monkeypatch.setattr("evmperf.publish.influx.push._RETRY_S", 0.1)
    bucket = own_influxd.bucket()
    live = Live(tmp_path, bucket)
    live.measure(3)
    await_(lambda: points(bucket, "result") == 3)
    own_influxd.stop()
    live.measure(4)
    await_(lambda: live.sender.problem)
    own_influxd.start()
    live.measure(2)
    assert "points sent" in live.end()
    assert points(bucket, "result") == 9
    assert points(bucket, "sample") == 18


def await_(happened):
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_frozen_server_holds_up_neither_measuring_nor_the_end(own_influxd, tmp_path):
    bucket = own_influxd.bucket()
    own_influxd.signal(signal.SIGSTOP)
    live = Live(tmp_path, bucket, timeout_s=30)
    assert live.measure(20) < 5  # the server is given 30 s
    began = time.monotonic()
    said = live.end(wait_s=1)
    assert time.monotonic() - began < 10
    assert "still sending after 1 s" in said
    assert "Nothing is lost" in said
    own_influxd.signal(signal.SIGCONT)
    assert push(bucket, live.spool.folder).complete
    assert points(bucket, "sample") == 40


def test_what_waits_goes_out_with_the_next_run(own_influxd, tmp_path):
    bucket = own_influxd.bucket()
    own_influxd.stop()
    first = Live(tmp_path, bucket)
    first.measure(3)
    assert "cannot be reached" in first.end()
    first.spool.release()
    own_influxd.start()
    second_run = spools.a_run(1)
    spools.write(tmp_path, second_run, [spools.a_result(second_run)])
    assert waiting(tmp_path, bucket.key, begun=True) == [first.spool.folder]
    sender = Sender(bucket, tmp_path / second_run.id)
    assert sender.finish(20) == f"InfluxDB {bucket.url}: 4 points sent."
    assert points(bucket, "sample") == 3 * 2 + 2
    assert points(bucket, "run") == 2


def test_a_damaged_older_run_does_not_stop_the_new_one(bucket, tmp_path):
    old = a_folder(tmp_path)
    PushProgress().save(old, bucket.key)
    (old / "run.json").write_text("{")
    live = Live(tmp_path, bucket, number=1)
    live.measure(1)
    assert "sent" in live.end()


def test_the_token_is_in_no_text_of_the_settings():
    config = Config("http://127.0.0.1:1", ORG, "bucket", TOKEN)
    assert TOKEN not in f"{config} {config!r} {config.key}"
