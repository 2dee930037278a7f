"""Benchmarks on a virtual EVM, those of networks with a real tester: what they change is put back, and faults
are named.
"""

import dataclasses

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.families import network
from evmperf.benchmarks.families.scratch import guard
from evmperf.benchmarks.step import Prepare
from evmperf.benchmarks.tables import usb_gadget as gadget
from evmperf.measure import shellstep
from evmperf.measure.runner import Runner
from evmperf.measure.runs.spool import Spool, new_run_id
from evmperf.model.errors import Kind
from evmperf.model.results import Status
from evmperf.model.run import Run
from selftests.support import runners

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
    spool = Spool(tmp_path, Run(id=new_run_id("network"), board="network", profile="quick"))
    tools = ["netperf", "netserver", "iperf3", "ethtool", "ip", "dd", "mkfs.vfat"]
    runner = Runner(bench, spool, "quick", tools)
    yield runner
    runner.close()


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


# Without a network


def step(runner, *steps):
    """Measure these steps alone."""
    return runner.measure(runners.make(*steps, tools=()), runners.CASE)


def test_a_command_that_ignores_ctrl_c_does_not_run_on_under_the_next_step(runner):
    stubborn = "trap '' INT QUIT TERM; while :; do sleep 0.123; done"
    result = step(runner, Prepare("hang", stubborn, 2))
    assert [failure.kind for failure in result.failures] == [Kind.TOOL]
    still = "$(grep -l 0.12[3] /proc/[0-9]*/cmdline 2>/dev/null | grep -c .)"
    assert step(runner, runners.measuring(f'echo 4{still} >"$OUT/x"; true')).values("rate") == [40.0]


def test_the_mounted_root_is_never_scratch(runner):
    link = "ln -sf $(awk '$2==\"/\"{print $1}' /proc/mounts) /tmp/root"
    fine = runners.measuring('echo 42 >"$OUT/x"')
    result = step(runner, Prepare("prepare", f"{link}; {guard('/tmp/root', '')}", 20), fine)
    assert result.status is Status.FAILED
    assert "holds the mounted root" in result.failures[0].message
    assert step(runner, fine).values("rate") == [42.0]


def test_a_gadget_that_a_killed_run_left_is_taken_away(runner):
    benchmark = catalogue.benchmark("usbdev_hs_slave_write")
    (case,) = benchmark.cases("quick")
    shell = runner.bench.shell()
    shellstep.install(shell)
    for step in benchmark.declared_steps(runner.bench.board, case, "quick"):
        if isinstance(step, Prepare) and step.name in ("plug", "mount"):
            assert shellstep.run(shell, step.command, step.timeout_s).status == 0
    assert shell.run("grep -c gadget /proc/mounts", 10).text.strip() == "1"

    result = runner.measure(benchmark, case)

    assert result.status is Status.MEASURED, result.failures
    left = shell.run(
        f"grep gadget /proc/mounts; ls -d {gadget.GADGET} {gadget.BACKING} /sys/module/dummy_hcd; "
        "ls -d /tmp/*-gadget",
        10,
    )
    assert left.text.count("No such file") == 4, left.text
    assert "vfat" not in left.text
