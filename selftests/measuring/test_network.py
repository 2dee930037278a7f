"""Network benchmarks with a real tester: what they change is put back, and faults are named."""

import dataclasses
import shlex
from unittest import mock

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.families import network
from evmperf.benchmarks.step import Prepare
from evmperf.measure.runner import Runner
from evmperf.measure.runs.spool import Spool, new_run_id
from evmperf.model.errors import Kind
from evmperf.model.results import Status
from evmperf.model.run import Run

pytestmark = pytest.mark.virtual_evm

STATE = """
ip -4 -o addr; grep . /sys/class/net/*/flags /sys/class/net/*/mtu
ip xfrm state; ip xfrm policy; ethtool -c eth1; grep ' 0A ' /proc/net/tcp /proc/net/tcp6
pidof netserver iperf3
ls /tmp/evmperf* 2>/dev/null | grep -E 'undo|netserver|iperf3'
"""
TESTER_STATE = "ip -4 -o addr; ip xfrm state; ip xfrm policy; grep ' 0A ' /proc/net/tcp*"
BENCHMARKS = catalogue.benchmarks()
MEASURED = (
    "eth_cpsw_tcp_bidir",
    "eth_cpsw_udp_egress_0loss",
    "eth_cpsw_udp_ingress_loss",
    "eth_icssg_udp_ingress_0loss",
    "pcie_eth",
)
"""One of each kind; test_virtual_tester.py measures IPsec and pacing, too."""


@pytest.fixture
def runner(bench, tmp_path):
    """A runner with a spool of its own."""
    runner = open_runner(bench, tmp_path)
    yield runner
    runner.close()


def open_runner(bench, folder):
    spool = Spool(folder, Run(id=new_run_id("network"), board="network", profile="quick"))
    return Runner(bench, spool, "quick", ["netperf", "netserver", "iperf3", "ethtool", "ip"])


def measure(runner, name, case=0, **changes):
    benchmark = dataclasses.replace(BENCHMARKS[name], **changes)
    return runner.measure(benchmark, benchmark.cases("quick")[case])


def state(bench):
    """Addresses, links, IPsec, pacing, listening ports, servers and our files, on both machines."""
    board, tester = bench.shell().run(STATE, 30), bench.tester().run(TESTER_STATE, 30)
    return [*board.text.splitlines(), *tester.text.splitlines()]


@pytest.mark.parametrize("name", MEASURED)
def test_everything_is_measured_and_put_back(runner, name):
    before = state(runner.bench)
    assert not any("192.168.100.2" in line for line in before), "the board has the address already"
    result = measure(runner, name)
    assert result.status is Status.MEASURED, result.failures
    assert {s.metric for s in result.samples} == {m.name for m in BENCHMARKS[name].metrics}
    if trials := result.conditions.get("trials"):
        assert [trial["step"] for trial in trials] == [f"trial{i + 1}" for i in range(len(trials))]
        best = max((t for t in trials if t["lost"] == 0), key=lambda trial: trial["asked"])
        assert result.values("throughput") == [best["throughput"]]
        assert sum("iperf3.json" in raw for raw in result.raw) == len(trials)
    assert state(runner.bench) == before


def test_a_cable_that_is_cut_is_named_and_nothing_is_left(runner):
    before = state(runner.bench)
    tester = runner.bench.tester()
    assert tester.run("ip link set evm0 down", 10).status == 0
    try:
        result = measure(runner, "eth_cpsw_tcp_bidir")
    finally:
        tester.run("ip link set evm0 up", 10)
    assert result.status is Status.FAILED
    assert [f.message for f in result.failures] == [
        "prepare ended with status 3: the tester does not answer at 192.168.100.1 over eth0: "
        "check its address and cable"
    ]
    assert state(runner.bench) == before


def test_a_server_that_does_not_start_is_named_and_nothing_is_left(runner, monkeypatch):
    before = state(runner.bench)
    monkeypatch.setitem(network._SERVERS, "netserver", "netserver -D -p {port} -L 203.0.113.1")
    result = measure(runner, "eth_cpsw_tcp_bidir")
    assert result.status is Status.FAILED
    assert "netserver" in result.failures[0].message
    assert "203.0.113.1" in result.failures[0].message
    assert state(runner.bench) == before


def test_a_board_that_dies_leaves_nothing_on_the_tester(runner):
    before = runner.bench.tester().run(TESTER_STATE, 30).text

    def steps(*given):
        first, server, *rest = BENCHMARKS["eth_cpsw_tcp_bidir"].steps(*given)
        return [first, server, Prepare("die", "echo c >/proc/sysrq-trigger; sleep 60", 90), *rest]

    result = measure(runner, "eth_cpsw_tcp_bidir", steps=steps)
    assert [failure.kind for failure in result.failures] == [Kind.BOARD]
    assert "kernel panic" in result.failures[0].message
    assert runner.bench.tester().run(TESTER_STATE, 30).text == before


def test_a_server_of_somebody_else_is_not_touched(runner):
    def steps(board, case, plan):
        return BENCHMARKS["pcie_eth"].steps(board, case, dataclasses.replace(plan, port=20123))

    tester = runner.bench.tester()
    tester.run("setsid iperf3 -s -p 20123 >/dev/null 2>&1 & echo $! >/tmp/evmperf-theirs", 10)
    try:
        result = measure(runner, "pcie_eth", steps=steps)
        assert result.status is Status.FAILED
        assert "port 20123 of the tester is taken" in result.failures[0].message
        assert tester.run("kill -0 $(cat /tmp/evmperf-theirs)", 10).status == 0
    finally:
        tester.run("kill $(cat /tmp/evmperf-theirs); rm /tmp/evmperf-theirs", 10)


def test_a_driver_without_interrupt_pacing_is_named(runner):
    result = measure(runner, "eth_cpsw_tcp_bidir_pacing")
    assert result.status is Status.FAILED
    assert "the driver of eth0 cannot pace interrupts" in result.failures[0].message


# IPsec: the tester's kernel is this machine's, which may have no ESP; the board's has it. So the
# far side is a network namespace on the board.

FAR = "evmperf-far"


class FarShell:
    """A shell on the far side."""

    files = None

    def __init__(self, shell):
        self.shell = shell

    def run(self, command, timeout_s):
        return self.shell.run(f"ip netns exec {FAR} sh -c {shlex.quote(command)}", timeout_s)


@pytest.fixture
def far(bench, tmp_path):
    shell = bench.shell()
    made = shell.run(
        f"ip netns add {FAR} && ip link add near0 type veth peer name far0 netns {FAR} && "
        f"ip -n {FAR} addr add 192.168.110.1/24 dev far0 && ip -n {FAR} link set far0 up",
        30,
    )
    assert made.status == 0, made.text
    link = {"interface": "near0", "board_address": "192.168.110.2/24", "tester_address": "192.168.110.1"}
    board = dataclasses.replace(bench.board, sections={**bench.board.sections, "ipsec": link})
    with mock.patch.multiple(bench, board=board, tester=lambda: FarShell(shell)):
        yield open_runner(bench, tmp_path)
    bench.shell().run(f"ip netns del {FAR}", 30)


def test_traffic_that_is_not_esp_is_refused_and_all_is_put_back(far):
    before = state(far.bench)
    flush = "ip xfrm policy flush"

    def steps(*given):
        steps = list(BENCHMARKS["ipsec_sw"].steps(*given))
        at = next(i for i, step in enumerate(steps) if step.name == "measure")
        clear = Prepare("clear", f"{flush}; ip netns exec {FAR} {flush}", 10)
        return [*steps[:at], clear, *steps[at:]]

    result = measure(far, "ipsec_sw", 1, steps=steps)
    assert result.samples == ()
    refusals = [f.message for f in result.failures if f.refused]
    assert len(refusals) == 2
    assert all("but ESP carried 0 there and 0 back" in message for message in refusals)
    assert state(far.bench) == before


def test_a_tester_without_esp_is_named(runner, bench):
    cannot = (
        bench.tester()
        .run(
            "ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x99 mode tunnel "
            "enc 'cbc(aes)' 0x00112233445566778899aabbccddeeff && ip xfrm state flush",
            10,
        )
        .status
    )
    if not cannot:
        pytest.skip("this machine's kernel has ESP")
    before = state(bench)
    result = measure(runner, "ipsec_sw", 1)
    assert "ESP" in result.failures[0].message
    assert state(bench) == before
