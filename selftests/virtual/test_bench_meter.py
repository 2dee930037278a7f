"""The simulated meter behind a virtual board's power switch, asked as a lab asks an instrument."""

import asyncio
import os
import subprocess
import sys

import yaml
from evmperf_virtual import envfile, power
from evmperf_virtual.power import RAILS as CHANNELS
from evmperf_virtual.power import SimulatedMeter

from evmperf.benchmarks.tables.low_power import RAILS

VIRTUAL = yaml.safe_load(envfile.source("virtual").read_text())["targets"]["main"]


def test_the_board_file_names_every_rail_of_the_guides():
    assert tuple(VIRTUAL["resources"]["ScpiMeter"]["rails"]) == RAILS
    assert tuple(VIRTUAL["options"]["power"]["rails"]) == RAILS
    assert len(CHANNELS) == len(RAILS)


def asked(meter, *queries):
    async def ask():
        return [await meter.answer(query) for query in queries]

    return asyncio.run(ask())


CURRENT = "MEAS:CURR? (@1)"


def current_of(*command):
    """Amperes of a board whose QEMU is this command."""
    with subprocess.Popen(command) as process:
        try:
            (answer,) = asked(SimulatedMeter("board", lambda: process.pid), CURRENT)
        finally:
            process.kill()
    return float(answer)


def test_a_busy_board_takes_more_than_a_resting_one_and_one_that_is_off_nothing(monkeypatch):
    monkeypatch.setattr(power, "_WINDOW_S", 2.0)  # on a loaded host it gets its turn in that
    assert current_of(sys.executable, "-c", "while True: pass") > 2 * current_of("sleep", "60") > 0
    off = SimulatedMeter("board", lambda: None)
    assert {float(answer) for answer in asked(off, CURRENT, "MEAS:VOLT? (@1)")} == {0.0}


def test_what_it_does_not_know_is_not_answered():
    meter = SimulatedMeter("board", os.getpid)
    queries = ("MEAS:VOLT? (@0)", "MEAS:VOLT? (@8)", "MEAS:RES? (@1)")
    assert asked(meter, *queries) == ["", "", ""]
    assert not SimulatedMeter.understands("GET /power/0 HTTP/1.1")
