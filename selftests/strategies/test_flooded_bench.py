"""A board that floods its console, behind the real drivers: the call ends, and says why."""

import threading

import pytest

from evmperf.lab import console
from evmperf.lab import shell as driver
from evmperf.model import limits
from evmperf.model.errors import BoardError, Kind, ToolError


@pytest.fixture
def flooding(fake):
    """Let the board say the same line when it boots, until its power is switched; returns how to
    begin.
    """
    ended = threading.Event()

    def flood():
        while "boot" not in fake.typed:
            if ended.wait(0.01):
                return
        switched = len(fake.switched)
        while not ended.is_set() and len(fake.switched) == switched:
            fake.say(b"[   12.345678] mmc0: error -110 whilst initialising SD card\r\n" * 500)

    thread = threading.Thread(target=flood, daemon=True)
    yield thread.start
    ended.set()
    if thread.ident:
        thread.join(10)


def test_a_command_that_prints_without_end_is_interrupted_and_the_shell_lives(
    open_bench, monkeypatch, tmp_path
):
    monkeypatch.setattr(limits, "REPLY_BYTES", limits.MIB)
    monkeypatch.setattr(driver, "_PROMPT_S", 10)
    shell = open_bench().shell()
    (tmp_path / "much").write_bytes(b"all work and no play\n" * 100_000)
    with pytest.raises(ToolError, match=r"printed more than 1 MiB.*it was interrupted"):
        shell.run(f"cat {tmp_path}/much", 30)
    assert shell.run("echo still here", 5).text == "still here\n"


def test_a_flood_at_the_login_is_a_fault_of_the_board(open_bench, fake, monkeypatch, flooding):
    monkeypatch.setattr(limits, "UNREAD_BYTES", limits.MIB)
    fake.boots = ["stuck"]
    bench = open_bench(K3BootStrategy={"boot_timeout": 30})
    flooding()
    with pytest.raises(BoardError, match=r"floods its console|more than 1 MiB") as error:
        bench.shell()
    assert error.value.kind is Kind.BOARD
    # The next power-on begins anew, though much of the flood is still on its way.
    assert bench.shell().run("echo again", 30).text == "again\n"


def test_what_nobody_looked_at_is_cut_and_said(open_bench, fake, monkeypatch):
    monkeypatch.setattr(limits, "UNREAD_BYTES", limits.MIB)
    bench = open_bench()
    shell = bench.shell()
    serial = bench._console
    fake.say(b"x" * (3 * limits.MIB))
    with serial._news:
        assert serial._news.wait_for(lambda: serial._error, 20)
        assert len(serial._buffer) <= limits.MIB
    with pytest.raises(BoardError, match="floods its console") as error:
        shell.run("echo lost", 5)
    assert isinstance(error.value, console.ConsoleFlood)
    said = [r.data for r in serial.history.records() if r.kind == "#"]
    assert any(b"bytes cut" in text for text in said)
    bench.abandon()
    assert bench.shell().run("echo again", 5).text == "again\n"
