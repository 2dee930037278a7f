"""The checks of this machine, its database and its serial ports."""

from __future__ import annotations

import ctypes
import os
from types import SimpleNamespace

import pytest
from serial.tools.list_ports_common import ListPortInfo

from evmperf.commands.cli.doctor import influx
from evmperf.lab.desk import host, ports
from evmperf.lab.desk.finding import Noted
from evmperf.model.errors import LabError, UsageError

NAMES = ("URL", "TOKEN", "ORG", "BUCKET")
AWAY = dict.fromkeys((f"EVMPERF_INFLUX_{name}" for name in NAMES), "http://127.0.0.1:1")


def test_a_database_that_answers(influxd):
    config = influxd.bucket()
    given = {f"EVMPERF_INFLUX_{name}": getattr(config, name.lower()) for name in NAMES}
    assert influx(given) == f"{config} can be read"
    with pytest.raises(LabError, match="answers 401"):
        influx(given | {"EVMPERF_INFLUX_TOKEN": "another"})


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({}, Noted, "not configured"),
        ({"EVMPERF_INFLUX_URL": "http://influx:8086"}, UsageError, "TOKEN"),
        (AWAY, LabError, "cannot be reached"),
    ],
    ids=["none", "missing", "away"],
)
def test_a_database_that_is_not_there_is_noted_or_named(given, error, said):
    with pytest.raises(error, match=said):
        influx(given)


def test_the_clock(monkeypatch):
    def kernel_says(state: int) -> None:
        libc = SimpleNamespace(adjtimex=lambda _: state)
        monkeypatch.setattr(ctypes, "CDLL", lambda _: libc)

    kernel_says(0)
    assert host.clock() == "synchronised"
    kernel_says(5)
    with pytest.raises(Noted, match="not synchronised"):
        host.clock()


def test_real_time_priority(monkeypatch):
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        with pytest.raises(Noted, match="no right to real-time priority"):
            host.real_time()
    else:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        assert "gets real-time priority" in host.real_time()
    monkeypatch.setattr(host, "_RAISE", "raise SystemExit(1)")
    with pytest.raises(Noted, match="rtprio"):
        host.real_time()


def test_which_uart_of_an_adapter_a_port_is(monkeypatch):
    def port(device, location=""):
        info = ListPortInfo(device)
        info.vid, info.pid = (0x0403, 0x6011) if location else (None, None)
        info.product, info.location = "Quad RS232-HS", location
        return info

    there = [port("/dev/ttyS0"), port("/dev/ttyUSB2", "1-2:1.2"), port("/dev/ttyUSB4", "1-3")]
    monkeypatch.setattr(ports.list_ports, "comports", lambda: there)
    several, one = (found.usb for found in ports.usb_ports())
    assert several == "Quad RS232-HS, 0403:6011, ID_USB_INTERFACE_NUM 02"
    assert one == "Quad RS232-HS, 0403:6011"
