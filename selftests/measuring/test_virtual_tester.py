"""The virtual EVM whose tester is a second QEMU: reached over SSH, it measures IPsec and pacing."""

import socket

import pytest
import requests

from evmperf.lab.tester import SshTester
from selftests.support.sessions import whole

pytestmark = pytest.mark.virtual_evm

VARIANT = "virtual-ipsec"
STATE = (
    "ip -4 -o addr; ip xfrm state; ip xfrm policy; grep ' 0A ' /proc/net/tcp*; "
    "pidof netserver iperf3; ls /tmp/evmperf* 2>/dev/null | grep -E 'undo|netserver|iperf3'"
)
"""Addresses, IPsec, listening ports, servers and our files."""


@pytest.fixture
def tester(own_bench):
    info = own_bench.status().tester
    requests.get(f"http://127.0.0.1:{own_bench.record.power_port}/tester", timeout=300).raise_for_status()
    tester = SshTester(info.ssh_host, info.ssh_options)
    yield tester, info
    tester.close()


def test_ipsec_and_pacing_are_measured_over_ssh_and_put_back(env_file, tester, tmp_path):
    shell, info = tester
    assert (info.namespace, info.nics[0].address) == ("", "192.168.100.1")
    assert shell.run("hostname", 30).text.strip() == "tester"
    before = shell.run(STATE, 30).text
    select = "(ipsec and aes128) or pacing"
    results = whole(env_file, tmp_path, select).measured()
    assert sorted((result.benchmark, result.status) for result in results) == [
        ("eth_cpsw_tcp_bidir_pacing", "measured"),
        # The accelerator's module is loaded for the first, and taken out for the other.
        ("ipsec_hw", "measured"),
        ("ipsec_sw", "measured"),
    ]
    (paced,) = (result for result in results if "pacing" in result.benchmark)
    assert paced.conditions["variant"] == "rx-usecs 500"
    (soft,) = (result for result in results if result.benchmark == "ipsec_sw")
    packets = soft.values("kpps")[0] * 1e3
    # Full segments one way: what a packet carries is at most an MTU.
    assert 100 < soft.values("throughput")[0] * 1e6 / 8 / packets < 1500
    assert shell.run(STATE, 30).text == before


def test_the_tester_ends_with_its_bench(own_bench):
    info = own_bench.status().tester
    assert own_bench.stop()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", info.port), 5)
