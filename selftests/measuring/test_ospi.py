"""The board with an OSPI controller: measured by a session, and what its guard refuses."""

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.families import scratch
from evmperf.benchmarks.tools import perf, uboot
from evmperf.measure import shellstep
from evmperf.measure.runs import spool
from selftests.support.sessions import whole

pytestmark = pytest.mark.virtual_evm

VARIANT = "virtual-ospi"
SCRATCH = "ospi.rootfs"
SCRATCH_BYTES = (0x800000, 0x3FC0000)
MARK = "the guard let it pass"


@pytest.fixture(scope="module")
def shell(bench):
    shell = bench.shell()
    shellstep.install(shell)
    return shell


@pytest.fixture
def guarded(shell):
    """A function that runs the guard: its exit status and what it says."""

    def run(name, size):
        guard = scratch.on_flash("guard_flash", name, size, "ospi.scratch")
        done = shellstep.run(shell, f"{guard}; echo {MARK}", 60)
        return done.status, done.files[shellstep.LOG].strip()

    return run


def must(shell, command):
    reply = shell.run(command, 60)
    assert reply.status == 0, reply.text
    return reply.text


def test_every_benchmark_is_measured_and_profiled_by_the_boards_own_perf(own_bench, env_file, tmp_path):
    one_row_of_ubifs = "not 102400 and not 524288 and not 1048576"
    session = whole(env_file, tmp_path, f"test_ospi and {one_row_of_ubifs}", "--perf")
    results = session.measured()
    assert sorted((result.benchmark, result.case) for result in results) == [
        ("linux_flash_summary", "OSPI NOR|1 MB"),
        ("ospi_raw_read", "4"),
        ("ospi_ubifs", "262144"),
        ("uboot_flash_summary", "OSPI NOR|1 MB"),
        ("uboot_ospi", "40000"),
        ("uboot_ospi", "80000"),
    ]
    for result in results:
        benchmark = catalogue.benchmark(result.benchmark)
        assert {s.metric for s in result.samples} == {m.name for m in benchmark.metrics}
        assert set(result.tools) == set(benchmark.tools)
    assert spool.read_run(session.folder).facts.spi_nor == ["s25fl512s 0102204d0080"]
    # A case of seconds is profiled: of a raw read, over in a tenth of one, perf has next to no samples.
    (written,) = (result for result in results if result.benchmark == "ospi_ubifs")
    assert written.conditions["perf"]
    stacks = [session.folder / name for name in written.raw if name.endswith(perf.FOLDED)]
    assert stacks
    assert all(perf.parse(file.read_text()).symbols for file in stacks)

    flash = (own_bench.folder / "disks" / "ospi.img").read_bytes()
    begin, end = SCRATCH_BYTES
    assert set(flash[:begin]) == set(flash[end:]) == {0xFF}, "only the scratch is written"
    assert len(set(flash[begin:end])) == 256


def test_what_is_not_there_or_too_small_is_refused(guarded):
    status, said = guarded("ospi.nothing", 1)
    assert status == 3
    assert "ospi.nothing " in said
    assert said.endswith(" options.ospi.scratch")
    status, said = guarded("ospi", 1)
    assert (status, MARK in said) == (3, False), "part of a name is no name"
    status, said = guarded("ospi.env", (256 << 10) + 1)
    assert status == 3
    assert "ospi.env is smaller than 262145 bytes" in said
    assert guarded("ospi.env", 256 << 10) == (0, MARK)


def test_what_is_mounted_is_refused(shell, guarded):
    must(shell, "modprobe -a mtdblock jffs2; flash_erase -q /dev/mtd1 0 0")
    must(shell, "mount -t jffs2 mtd:ospi.tispl /mnt")
    try:
        status, said = guarded("ospi.tispl", 1)
        assert (status, "is mounted" in said, MARK in said) == (3, True, False)
        must(shell, "umount /mnt; mount -t jffs2 /dev/mtdblock1 /mnt")
        status, said = guarded("ospi.tispl", 1)
        assert (status, "is mounted" in said, MARK in said) == (3, True, False)
        assert guarded("ospi.u-boot", 1) == (0, MARK)
    finally:
        must(shell, "umount /mnt")


def test_somebody_elses_ubi_is_refused_and_our_own_is_detached(shell, guarded):
    must(shell, "modprobe -a ubi ubifs; ubiformat -q -y /dev/mtd5")
    must(shell, "ubiattach -m 5")
    try:
        status, said = guarded(SCRATCH, 1)
        assert status == 3
        assert f"{SCRATCH} is attached to UBI" in said
        assert MARK not in said
    finally:
        must(shell, "ubidetach -m 5")
    must(shell, "ubiattach -m 5 -d 31")
    assert guarded(SCRATCH, 1) == (0, MARK)
    assert "ubi31" not in must(shell, "ls /sys/class/ubi")


def test_a_flash_that_does_not_keep_what_is_written_gives_no_figure(bench):
    prompt = bench.uboot()
    offset, size = 0x800000, 0x40000
    assert prompt.run(f"sf probe 0:0 && {uboot.sf_fill(size)}", 30).status == 0
    assert prompt.run(uboot.sf_write(offset, size), 60).status == 0
    assert prompt.run(f"mw.b ${{loadaddr}} 0 1 && {uboot.sf_read(offset, size)}", 60).status
    # Beyond the flash U-Boot itself refuses, before anything is written.
    reply = prompt.run(uboot.sf_write(0x4000000 - size, 2 * size), 60)
    assert reply.status
    assert "attempting erase past flash size" in reply.text
