"""Ends of a boot: what a console shows of them, and what a network answers."""

import socket
import time

import pytest
from labgrid import Environment

from evmperf.boards.console.record import ConsoleRecord
from evmperf.boards.options import End
from evmperf.lab import answering, ends
from evmperf.model.errors import BoardError
from evmperf.model.records import BootMark
from selftests.support.fakes import good_boot
from selftests.support.placelab import until
from selftests.support.web import Handler, serving

START = BootMark("starting_kernel", 0, 0, 0.0, "")
OURS, OTHERS = "02:00:00:00:00:01", "02:00:00:00:00:02"


class NoConsole:
    """A console that shows nothing."""

    def records(self):
        return []


def marks(line, *pieces):
    """The marks of an end in pieces of a console: bytes of the board, or what was typed as text."""
    records = [
        ConsoleRecord(number * 1000, number, ">" if isinstance(piece, str) else "<", piece.encode())
        if isinstance(piece, str)
        else ConsoleRecord(number * 1000, number, "<", piece)
        for number, piece in enumerate(pieces, 1)
    ]
    return [mark.mono_ns for mark in ends._lines("app", End(line=line), records, START)]


@pytest.mark.parametrize(
    ("mac", "known", "why"),
    [(OURS, OURS, "did not come within"), (OURS, None, "did not come"), (OTHERS, OURS, f"not the {OURS}")],
)
def test_an_answer_after_its_deadline_is_late_and_a_strangers_is_called_that(mac, known, why):
    with ends.EndWatch({}, macs={"net": known} if known else {}) as watch:
        watch.ends = {"net": End(ping="192.0.2.1", within_s=0), "gui": End(unit="gui.service", within_s=0)}

        def shell():
            # It answers while systemd is asked for the other end.
            watch._turns.append(answering.Turn("net", True, 3 * 10**9, 4 * 10**9, mac))
            raise BoardError("the shell is gone")

        boot = watch.await_all(good_boot(), NoConsole(), shell)
    assert why in boot.missed["net"]
    assert watch.macs.get("net") == known


def test_lines_that_labgrid_reads_are_ends_and_those_active_before_are_not(tmp_path):
    names = ("lamp", "led", "gone", "fell")
    entries = "".join(
        f"    - FileDigitalOutputDriver: {{name: {n}, filepath: {tmp_path / n}}}\n" for n in names
    )
    (tmp_path / "board.yaml").write_text(f"targets:\n  main:\n    drivers:\n{entries}")
    for name in names:
        (tmp_path / name).write_text("0\n")
    target = Environment(str(tmp_path / "board.yaml")).get_target()
    drivers = {name: target.get_driver("DigitalOutputProtocol", name=name) for name in names}
    drivers["led"].set(True)
    drivers["fell"].set(True)
    (tmp_path / "gone").unlink()
    asked = {name: End(gpio=name, within_s=1, interval_ms=20) for name in names}
    with ends.EndWatch(asked, drivers=drivers) as watch:
        until(lambda: len(watch._turns) == 3)
        drivers["fell"].set(False)  # its board was still on
        until(lambda: len(watch._turns) == 4)
        boot, before_ns = good_boot(0.001, begin=time.monotonic_ns()), time.monotonic_ns()
        drivers["lamp"].set(True)
        boot = watch.await_all(boot, NoConsole(), None)
        after_ns = time.monotonic_ns()
    lit = boot.ends["lamp"]
    assert before_ns - lit.error_s * 1e9 <= lit.mono_ns <= after_ns + lit.error_s * 1e9
    assert boot.missed["led"] == "end led: its line was active before the kernel started"
    assert "did not come within 1 s" in boot.missed["fell"]
    assert "gone: FileDigitalOutputDriver cannot read it: " in boot.missed["gone"]


SERIAL = [b"starting\r\napp is", b" ready\r\n", b"more\r\n"]
READY, TYPED = "application is ready", "logger application is ready; systemctl start app\n"


@pytest.mark.parametrize(
    ("line", "pieces", "at_ns"),
    [
        # A line of a serial console ends before its carriage return.
        *((line, SERIAL, [2000]) for line in ("^app is ready", "ready$", "^app is ready$")),
        # An echo is no end, and a line with a typed word is one.
        ("root", ["root\n", b"evm login: root\r\n", b"root file system is ready\r\n"], [3000]),
        (READY, [TYPED, b"# logger application is \r\nready; systemctl\r\n"], []),
        (READY, [TYPED, b"# logger application is ready; sys\r\n"], []),
        # A line without an end takes no memory without end.
        ("ready", [*[b"x" * 100_000] * 200, b"ready\r\n"], [201_000]),
    ],
)
def test_a_line_is_an_end_where_the_board_says_it(line, pieces, at_ns):
    assert marks(line, *pieces) == at_ns


def answer(end, place, meanwhile=lambda: None):
    """What comes of one try."""
    attempt = answering._Try(end, socket.AF_INET, place)
    meanwhile()
    until = time.monotonic() + 10
    while (came := attempt.ended()) is None and time.monotonic() < until:
        time.sleep(0.01)
    attempt.connection.close()
    return came


def test_a_network_that_cannot_be_reached_is_no_answer():
    """As while the board is off and the link is down: TCP has no way to a broadcast address either."""
    assert answer(End(tcp="255.255.255.255:80"), ("255.255.255.255", 80)) is False


def test_a_server_answers_with_the_status_that_is_wanted():
    class Busy(Handler):
        def do_GET(self):
            self.say(503)

    with serving(Busy) as server:
        place = server.server_address
        assert answer(End(tcp=f"127.0.0.1:{place[1]}"), place) is True
        assert answer(End(http=server.url), place) is False
        assert answer(End(http=server.url, status=503), place) is True


def test_a_server_of_another_protocol_is_no_answer_of_http():
    with socket.create_server(("127.0.0.1", 0)) as server:
        place, peers = server.getsockname(), []

        def greet():
            peers.append(server.accept()[0])
            peers[0].sendall(b"220 200 mail.example ESMTP\r\n")

        assert answer(End(http=f"http://127.0.0.1:{place[1]}/"), place, greet) is False
        peers[0].close()
