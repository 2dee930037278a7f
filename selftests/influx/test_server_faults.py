"""What a real server does wrong, and what we do wrong towards it: said clearly, nothing lost."""

import contextlib
import itertools
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from evmperf.measure.hostload import slowness
from evmperf.measure.runs.spool import Spool
from evmperf.publish.influx.client import Store, StoreError
from evmperf.publish.influx.push import end, progress, state_key, waiting
from evmperf.publish.influx.push import push as push_all
from selftests.support import spools
from selftests.support.influxd import TOKEN, points, running

CASES = 40


def a_folder(results, cases=CASES):
    run = spools.a_run()
    return spools.write(results, run, [spools.a_result(run, n) for n in range(cases)])


def push(config, folder, timeout_s=20.0):
    """Whether a run is whole in the bucket."""
    with Store(config, timeout_s) as store:
        list(push_all(store, [folder]))
    return bool(progress(folder).get(state_key(config)))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"token": "another-token"}, r"answers 401 \(unauthorized access\): check .*_TOKEN"),
        ({"bucket": "no-such"}, r"bucket no-such\): .*\(bucket \"no-such\" not found\).*_BUCKET"),
        ({"org": "no-such"}, r"\(organization name \"no-such\" not found\): check .*_ORG"),
        ({"url": "http://127.0.0.1:1"}, r"cannot be reached \(Connection refused\).*INFLUX_URL"),
        ({"url": "http://no-such.invalid"}, r"no-such.invalid .*: cannot be reached"),
    ],
)
def test_a_wrong_setting_is_named_and_nothing_is_lost(bucket, tmp_path, wrong, message):
    folder = a_folder(tmp_path)
    with pytest.raises(StoreError, match=message) as error:
        push(replace(bucket, **wrong), folder)
    assert TOKEN not in str(error.value)
    assert "another-token" not in str(error.value)
    assert push(bucket, folder)
    assert points(bucket, "samples") == 2 * CASES


def test_a_token_that_may_only_read(influxd, bucket, tmp_path):
    org = influxd.api("orgs")["orgs"][0]["id"]
    right = {"action": "read", "resource": {"type": "buckets"}}
    weak = influxd.api("authorizations", orgID=org, permissions=[right])["token"]
    with pytest.raises(
        StoreError, match=r"answers 403 \(insufficient permissions for write\): check .*_TOKEN"
    ) as error:
        push(replace(bucket, token=weak), a_folder(tmp_path))
    assert weak not in str(error.value)


@pytest.mark.influxd
def test_a_full_disk_of_the_server_is_named_and_nothing_is_lost(tmp_path):
    """A disk of 96 MB; what fills it is taken away again."""
    with running(tmp_path / "influxd", small=96 << 20) as server:
        bucket, folder = server.bucket(), a_folder(tmp_path)
        filler = Path(f"/proc/{server.pid}/root{server.folder}/filler")
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(1 << 14)):
                pass
        with pytest.raises(StoreError, match=r"no space left on device.*: check .* the server"):
            push(bucket, folder)
        filler.unlink()
        # Influxd itself goes on refusing until it is started again.
        server.restart_on_small_disk()
        assert push(bucket, folder)
        assert points(bucket, "samples") == 2 * CASES


def test_ctrl_c_does_not_wait_for_a_server_that_hangs(bucket, tmp_path):
    """Nor does the end of the process: its answer would be awaited for ten minutes."""
    code = """
import pathlib, sys
from evmperf.publish.influx.client import Config, Store
from evmperf.publish.influx.push import push
with Store(Config(sys.argv[1], "lab", "b", "t"), 600) as store:
    list(push(store, [pathlib.Path(sys.argv[2])]))
"""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        command = [sys.executable, "-c", code, url, str(a_folder(tmp_path))]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as sending:
            connection, _ = server.accept()
            connection.recv(1)  # the batch is under way
            sending.send_signal(signal.SIGINT)
            assert "KeyboardInterrupt" in sending.communicate(timeout=30)[1]
            connection.close()


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
    deadline = time.monotonic() + 120 * slowness()
    try:
        while failed < 3:
            assert time.monotonic() < deadline
            try:
                push(bucket, next(folders))
            except StoreError:
                failed += 1
    finally:
        stop.set()
        killer.join()
    for folder in waiting(tmp_path / "results", bucket):
        push(bucket, folder)
    assert points(bucket, "samples") == number * 300 * 2
    assert points(bucket, "cases") == number * 300
    assert points(bucket, "runs") == number


def test_a_run_is_sent_when_it_has_ended_and_one_at_work_is_not(bucket, tmp_path):
    run = spools.a_run()
    live = Spool(tmp_path, run)
    live.hold()
    live.append(*(spools.a_result(run, number) for number in range(5)))
    assert not push(bucket, live.folder)
    assert points(bucket, "cases") == 0
    live.release()
    assert end(live.folder, bucket) == f"InfluxDB {bucket.url}: 16 points sent."
    assert (points(bucket, "cases"), points(bucket, "runs")) == (5, 1)


def test_a_frozen_server_holds_up_the_end_for_its_time(own_influxd, tmp_path):
    bucket = own_influxd.bucket()
    folder = a_folder(tmp_path)
    own_influxd.signal(signal.SIGSTOP)
    began = time.monotonic()
    assert "Nothing is lost" in end(folder, bucket, 1)
    assert time.monotonic() - began < 10
    own_influxd.signal(signal.SIGCONT)
    assert push(bucket, folder)
    assert points(bucket, "samples") == 2 * CASES


def test_what_waits_goes_out_with_the_next_run_and_a_damaged_one_is_passed_over(bucket, tmp_path):
    first = a_folder(tmp_path, cases=3)
    damaged, next_one = (
        spools.write(tmp_path, run, [spools.a_result(run)]) for run in map(spools.a_run, (1, 2))
    )
    assert "cannot be reached" in end(first, replace(bucket, url="http://127.0.0.1:9"))
    (damaged / "run.json").write_text("{")
    assert end(next_one, bucket) == f"InfluxDB {bucket.url}: 4 points sent."
    assert points(bucket, "samples") == 3 * 2 + 2
    assert points(bucket, "runs") == 2
