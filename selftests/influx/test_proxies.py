"""Servers on loopback that are not InfluxDB's, or a bad one: nothing counts as sent that was not."""

import contextlib
import itertools
import json
import time

import pytest

from evmperf.publish.influx import push as pushing
from evmperf.publish.influx.client import Config, Store, StoreError
from evmperf.publish.influx.push import progress, push, state_key
from evmperf.publish.influx.reader import InfluxRuns
from selftests.support import spools, web

CASES = 3
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
        (pushed,) = push(store, [folder])
        return pushed


@pytest.fixture
def folder(tmp_path):
    run = spools.a_run()
    return spools.write(tmp_path, run, [spools.a_result(run, n) for n in range(CASES)])


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
    return len(taken) > 2 * CASES


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
        say(handler, 200, body=HTML) if next(turns) == CASES else influxdb(handler, path, body)

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
