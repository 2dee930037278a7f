"""The main job on real input: what the virtual EVM can, in one session.

CI measures one row of each benchmark that no other test here measures, and of those with the same
steps on another disk or in another mode one. All take 20 minutes: `pytest
selftests/measuring/test_everything.py --all-rows`.
"""

import itertools

import pytest
import yaml

from evmperf.benchmarks import catalogue, energy
from evmperf.benchmarks.tables.low_power import LEAD_S, RAILS
from evmperf.boards import board as boards
from evmperf.boards.console import record as console
from evmperf.boards.console.marks import Phase
from evmperf.measure.runs import spool
from evmperf.model.records import BootRecord
from selftests.measuring import test_network
from selftests.support.sessions import whole

pytestmark = pytest.mark.virtual_evm

DEADLINE_S = 1800
ELSEWHERE = {*test_network.MEASURED}
SAME_STEPS = {
    *("emmc_ext4", "mmcsd_ext2", "mmcsd_ext4", "mmcsd_vfat", "pcie_nvme_ext2", "pcie_nvme_vfat"),
    *("emmc_raw_fio_1g", "emmc_ext4_fio_1g", "mmcsd_raw_fio_1g", "pcie_nvme_ext4_fio_10g"),
    *("usbhost_msc_ext2", "usbhost_msc_ext4", "usbhost_msc_ext4_fio", "usbhost_msc_raw_fio"),
    *("mmcsd_ext4_fio_1g", "ufs_raw_fio"),
    *("usbdev_hs_slave_write", "usbdev_ss_slave_read"),
    *("lpm_power_rtc_ddr", "lpm_power_mcu_only", "lpm_power_io_ddr"),
    *("eth_icssg_tcp_bidir", "eth_icssg_switch_forwarding", "eth_cpsw_udp_ingress_0loss"),
    *("eth_icssg_udp_egress_0loss", "eth_icssg_udp_ingress_loss", "eth_icssg_tcp_bidir_pacing"),
}
"""What remains measures each file system, each disk, fio over a file, and a sleep; fio over a disk is the
same without mkfs and mount.
"""
SLEEP_S = 12
"""Enough for the quick profile's window."""
REST_W = 0.01101
"""What the virtual meter shows of a board at rest."""


@pytest.fixture
def env_file(env_file, tmp_path):
    """The board with a shorter sleep, and whose supply is metered."""
    data = yaml.safe_load(env_file.read_text())
    data["targets"]["main"]["options"]["power"] |= {"sleep_s": SLEEP_S, "supply": list(RAILS)}
    path = tmp_path / env_file.name
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


def longest_silence_s(records, results, name):
    """Seconds in a row in which nothing was typed in the case of a benchmark."""
    (result,) = (result for result in results if result.benchmark == name)
    end_ns = result.started_ns + result.duration_s * 1e9
    typed = [r.mono_ns for r in records if r.kind == ">" and result.started_ns <= r.wall_ns <= end_ns]
    return max(after - before for before, after in itertools.pairwise(typed)) / 1e9


def test_everything_is_measured(env_file, tmp_path, request):
    board = boards.load(env_file)
    rows = {
        benchmark.name: [
            case.label for case in benchmark.cases("quick") if not benchmark.unsupported(board, case)
        ]
        for benchmark in catalogue.benchmarks().values()
    }
    every = {(name, row) for name, labels in rows.items() for row in labels}
    expected = every
    if not request.config.getoption("--all-rows", default=False):
        assert {name for name, labels in rows.items() if labels} >= SAME_STEPS | ELSEWHERE
        out = SAME_STEPS | ELSEWHERE
        expected = {(name, labels[0]) for name, labels in rows.items() if labels and name not in out}
    left_out = (f"--leave-out={name}/{row}" for name, row in sorted(every - expected))
    session = whole(env_file, tmp_path, "", "--boots=1", *left_out, deadline_s=DEADLINE_S)
    results = session.measured()
    assert {(result.benchmark, result.case) for result in results} == expected
    assert len(results) == len(expected)

    for result in results:
        benchmark = catalogue.benchmark(result.benchmark)
        (case,) = (c for c in benchmark.cases("quick") if c.label == result.case)
        assert result.status == "measured"
        assert {sample.metric for sample in result.samples} >= {
            metric.name for metric in benchmark.metrics_of(case) if metric.required
        }
        for sample in (sample for sample in result.samples if sample.metric not in energy.METRICS):
            benchmark.metric(sample.metric, case).check(sample.value)
            assert sample.unit == benchmark.metric(sample.metric, case).unit

    # The virtual meter follows QEMU's processor time.
    (boot,) = (result for result in results if result.benchmark == "boot_time_mmcsd")
    assert boot.conditions["supply_meter"].startswith("evmperf,Virtual Meter")
    (joules,), (watts,) = boot.values("energy"), boot.values("mean_power")
    assert watts > 2 * REST_W
    assert joules / watts > boot.values("boot_time")[0]
    # Of a tool that works for a moment there are too few readings.
    longer = [result for result in results if result.driver != "boot" and result.values("energy")]
    assert longer
    for result in longer:
        (joules, *_), (watts, *_) = result.values("energy"), result.values("mean_power")
        assert watts > REST_W
        assert 0 < joules / watts < result.duration_s

    boots = [r for r in spool.read_records(session.folder) if isinstance(r, BootRecord)]
    phases = [mark.phase for mark in boots[0].marks]
    # Root and init come in either order; a virtual EVM has no SPL.
    before_uboot = {Phase.BL1, Phase.SPL_BANNER, Phase.TF_A, Phase.OP_TEE, Phase.A53_SPL}
    assert set(Phase) - set(phases) == {*before_uboot, Phase.EFI_STUB}
    times = [mark.mono_ns for mark in boots[0].marks if mark.phase != "init_started"]
    assert times == sorted(times)

    run = spool.read_run(session.folder)
    assert run.exit_status == 0
    assert run.os == "Linux"
    for fact in ("kernel", "uboot", "image", "memory_kib", "cards", "evmperf", "tools"):
        assert getattr(run.facts, fact), fact
    assert run.facts.virtual is True
    for document in ("dmesg", "device_tree", "kernel_config"):
        assert (session.folder / "facts" / document).stat().st_size, document

    output = session.said
    assert f"[{len(expected)}/{len(expected)}]" in output
    assert f"All measured: {len(expected)} of {len(expected)} cases" in output
    report = (session.folder / "report.html").read_text()
    assert "phases of every cycle" in report
    for name in (name for result in results for name in result.raw):
        assert (session.folder / name).stat().st_size
    records = list(console.read(session.folder / "console.log"))
    assert b"Starting kernel" in b"".join(record.data for record in records)
    assert longest_silence_s(records, results, "lpm_power_deep_sleep") > SLEEP_S + LEAD_S
