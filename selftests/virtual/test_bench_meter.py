"""The simulated meter behind a virtual board's power switch, asked as a lab asks an instrument."""

import asyncio
import os
import subprocess
import sys
import threading

import pytest
import yaml
from evmperf_virtual import envfile, power
from evmperf_virtual.power import RAILS as CHANNELS
from evmperf_virtual.power import PowerServer, SimulatedMeter
from labgrid import Target

from evmperf.benchmarks.tables.low_power import RAILS
from evmperf.lab.meter import RailMeterDriver, ScpiMeter, ScpiMeterDriver
from evmperf.model.errors import LabError

VIRTUAL = yaml.safe_load(envfile.source("virtual").read_text())["targets"]["main"]


@pytest.fixture
def switch_port():
    """The power port of a bench whose board is this process."""

    async def refuse(*_):
        raise LabError("a meter only")

    loop, ready = asyncio.new_event_loop(), threading.Event()
    ports = []

    async def serve():
        server = PowerServer(0, refuse, SimulatedMeter("board-b", os.getpid))
        ports.append(server.port)
        ready.set()
        await stop.wait()
        server.close()

    stop = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(10)
    yield ports[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join(10)
    loop.close()


def test_an_instrument_answers_on_the_port_of_the_switch(switch_port):
    rails = VIRTUAL["resources"]["ScpiMeter"]["rails"]
    target = Target("main")
    ScpiMeter(target, "meter", rails=rails, visa=f"TCPIP::127.0.0.1::{switch_port}::SOCKET", timeout=5)
    ScpiMeterDriver(target, "meter")
    try:
        meter = target.get_driver(RailMeterDriver)
        assert meter.identity() == "evmperf,Virtual Meter,board-b,1 (SCPI)"
        answers = meter.read(list(rails))
    finally:
        target.cleanup()
    assert [float(volts.split()[0]) for volts, _ in answers.values()] == [v for v, _ in CHANNELS]
    assert all(float(amperes.split()[0]) > 0 for _, amperes in answers.values())


def test_the_board_file_names_every_rail_of_the_guides():
    assert tuple(VIRTUAL["resources"]["ScpiMeter"]["rails"]) == RAILS
    assert tuple(VIRTUAL["options"]["power"]["rails"]) == RAILS
    assert len(CHANNELS) == len(RAILS)


def asked(meter, *queries):
    async def ask():
        return [await meter.answer(query) for query in queries]

    return asyncio.run(ask())


def test_a_busy_board_takes_more_than_a_resting_one_and_one_that_is_off_nothing(monkeypatch):
    monkeypatch.setattr(power, "_WINDOW_S", 2.0)  # on a loaded host it gets its turn in that
    current = "MEAS:CURR? (@1)"
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            (busy,) = asked(SimulatedMeter("board", lambda: process.pid), current)
        finally:
            process.kill()
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            (resting,) = asked(SimulatedMeter("board", lambda: process.pid), current)
        finally:
            process.kill()
    assert float(busy) > 2 * float(resting) > 0
    off = SimulatedMeter("board", lambda: None)
    assert {float(answer) for answer in asked(off, current, "MEAS:VOLT? (@1)")} == {0.0}


def test_what_it_does_not_know_is_not_answered():
    meter = SimulatedMeter("board", os.getpid)
    queries = ("MEAS:VOLT? (@0)", "MEAS:VOLT? (@8)", "MEAS:RES? (@1)")
    assert asked(meter, *queries) == ["", "", ""]
    assert not SimulatedMeter.understands("GET /power/0 HTTP/1.1")
