"""What a server does wrong, InfluxDB's or another, and what we do wrong towards it: nothing is lost."""

import contextlib
import itertools
import json
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
from evmperf.publish.influx import push as pushing
from evmperf.publish.influx.client import Config, Store, StoreError
from evmperf.publish.influx.push import end, progress, state_key, waiting
from evmperf.publish.influx.push import push as push_all
from evmperf.publish.influx.reader import InfluxRuns
from selftests.support import spools, web
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


FEW = 3
"""A small run: a handful of points."""
HTML = b"<html><body>Please log in, or ask your administrator: \xff</body></html>"


@contextlib.contextmanager
def serving(answer, tls=()):
    """A server that answers each POST by `answer(handler, path, body)`; yields its settings."""

    class Handler(web.Handler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with contextlib.suppress(OSError):
                answer(self, self.path.partition("?")[0], body)

    with web.serving(Handler, tls=tls) as server:
        yield Config(server.url, "lab", "b", "a-token")


def say(handler, status, kind="text/html", body=b""):
    handler.send_response(status)
    if status != 204:
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def influxdb(handler, path, body):
    """A server as it should be, with nothing in it."""
    if path == "/api/v2/write":
        say(handler, 204)
    else:
        say(handler, 200, "text/csv; charset=utf-8", b"\r\n")


def send(config, folder, timeout_s=5.0):
    with Store(config, timeout_s) as store:
        (pushed,) = push_all(store, [folder])
        return pushed


@pytest.fixture
def folder(tmp_path):
    run = spools.a_run()
    return spools.write(tmp_path, run, [spools.a_result(run, n) for n in range(FEW)])


def is_unsent(config, folder):
    """Whether all of the run still waits; what a later call sends proves it."""
    assert state_key(config) not in progress(folder)
    taken = []

    def take(handler, path, body):
        if path == "/api/v2/write":
            taken.extend(body.splitlines())
        influxdb(handler, path, body)

    with serving(take) as better:
        assert not send(better, folder).problems
    return len(taken) > 2 * FEW


SLOW = {
    "slow status": b"HTTP/1.1 2",
    "slow header": b"HTTP/1.1 204 No Content\r\nX-Long: ",
    "slow page": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n",
    "slow error": b"HTTP/1.1 503 Busy\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n",
}
WRONG = {
    "a page for everything": lambda handler, path, body: say(handler, 200, body=HTML),
    "a page of the right type": lambda handler, path, body: say(handler, 200, "text/csv", HTML),
    "JSON": lambda handler, path, body: say(handler, 200, "application/json", b"{}"),
    "accepted, perhaps": lambda handler, path, body: say(handler, 202),
    "another address": lambda handler, path, body: say(handler, 302, body=HTML),
    "413 for everything": lambda handler, path, body: say(handler, 413, body=HTML),
    "400 of a proxy": lambda handler, path, body: say(handler, 400, body=HTML),
    "422 of a proxy": lambda handler, path, body: say(handler, 422, "application/json", b"[1]"),
} | {name: lambda handler, path, body, head=head: web.trickle(handler, head) for name, head in SLOW.items()}


@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
def test_what_a_proxy_answers_or_trickles_is_not_delivered(folder, answer):
    with serving(answer) as config:
        begun = time.monotonic()
        with pytest.raises(StoreError, match=r"InfluxDB http.*: check EVMPERF_INFLUX_URL"):
            send(config, folder, timeout_s=1.0)
        assert time.monotonic() - begun < 30
        assert is_unsent(config, folder)


def test_the_run_s_own_line_comes_when_all_others_have_arrived(folder, monkeypatch):
    monkeypatch.setattr(pushing, "_BATCH_BYTES", 1)
    flying, beside, last = [], [], []

    def slow(handler, path, body):
        flying.append(body)
        time.sleep(0.02)
        beside.append(len(flying))
        flying.remove(body)
        last[:] = body.splitlines()
        influxdb(handler, path, body)

    with serving(slow) as config:
        points = send(config, folder).points
    assert beside == [1] * points
    assert last[0].startswith(b"runs,")


def test_a_page_beside_a_right_answer_is_not_delivered(folder, monkeypatch):
    monkeypatch.setattr(pushing, "_BATCH_BYTES", 1)
    turns = itertools.count(1)

    def now_and_then(handler, path, body):
        say(handler, 200, body=HTML) if next(turns) == FEW else influxdb(handler, path, body)

    with serving(now_and_then) as config:
        with pytest.raises(StoreError, match=r"InfluxDB http.*: check EVMPERF_INFLUX_URL"):
            send(config, folder)
        assert is_unsent(config, folder)


def test_a_certificate_that_nobody_here_knows_is_no_server(folder, tmp_path, monkeypatch):
    """And it is not tried again, but for who names it."""
    files = web.certificate(tmp_path)
    with serving(influxdb, files) as config:
        with pytest.raises(StoreError, match=r"\(certificate verify failed: .*\): name .* SSL_CERT_FILE"):
            send(config, folder)
        monkeypatch.setenv("SSL_CERT_FILE", str(files[0]))
        assert send(config, folder).points


def test_who_repeats_the_token_does_not_make_it_known(folder):
    def repeat(handler, path, body):
        words = json.dumps({"message": handler.headers["Authorization"]}).encode()
        handler.say(401, words, X_Platform_Error_Code="unauthorized")

    with serving(repeat) as config, pytest.raises(StoreError, match=r"answers 401 \(Token ") as error:
        send(config, folder)
    assert config.token not in str(error.value)


def test_pages_in_place_of_rows_are_an_error():
    def answer(handler, path, body):
        say(handler, 200, "text/csv", b"<html>\r\n<body>\r\nlog in, please\r\n")

    with (
        serving(answer) as config,
        Store(config) as store,
        pytest.raises(StoreError, match="perhaps it is a proxy's"),
    ):
        InfluxRuns(store).runs()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_server_that_is_busy_is_asked_again_when_it_says(folder, status, monkeypatch):
    """After as long as it says, within bounds, but not for ever."""
    asked, slept = [], []
    monkeypatch.setattr("urllib3.util.retry.time.sleep", slept.append)

    def answer(handler, path, body):
        asked.append(body)
        if len(asked) < 3:
            handler.send_response(status)
            handler.send_header("Retry-After", "1" if len(asked) == 1 else "3600")
            handler.send_header("Content-Length", "0")
            handler.end_headers()
        else:
            influxdb(handler, path, body)

    with serving(answer) as config:
        assert send(config, folder).points
    assert slept == [1, 5]
    said = pytest.raises(StoreError, match=rf"answers {status} .*proxies")
    with serving(lambda handler, path, body: say(handler, status)) as config, said:
        send(config, folder)
    assert slept == [1, 5, 1, 2]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"KEY": 3}', '{"KEY": {"results": "x"}}', '{"KEY": {"results": -1}}', "[" * 9999]
)
def test_a_damaged_note_of_what_was_sent_sends_all_again(folder, text):
    with serving(influxdb) as config:
        first = send(config, folder).points
        (folder / "influx.json").write_text(text.replace("KEY", state_key(config)))
        assert send(config, folder).points == first
