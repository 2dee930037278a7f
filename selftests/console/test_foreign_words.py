"""What boards say that are not TI's: prompts, loaders that find nothing, kernels that speak late."""

import pytest

from evmperf.boards.console.marks import Phase, remarks
from evmperf.boards.console.signs import diagnose
from evmperf.measure import provenance, shellstep
from evmperf.model import places
from evmperf.model.errors import Kind
from evmperf.model.facts import Facts
from evmperf.model.records import BootMark
from selftests.support import programs

ROOT_MISSING = "the root file system did not appear"
UBOOT = "U-Boot 2025.01 (Jan 06 2025)\nHit any key to stop autoboot:  2 \n"


@pytest.mark.parametrize("prompt", ["#> ", "> ", "$ ", "sunxi# ", "U-Boot> "])
def test_a_prompt_of_another_form_is_named_with_what_to_set(prompt):
    cause = diagnose(f"{UBOOT}{prompt}")
    assert cause
    assert cause.text == prompt.strip()
    assert cause.kind is Kind.LAB
    assert cause.permanent
    assert "`prompt` of EvmUBootDriver" in cause.remedy


def test_a_root_that_came_is_not_the_cause():
    said = (
        f"{UBOOT}Starting kernel ...\n[    1.0] Linux version 6.12\nBegin: Waiting for root file system ...\n"
    )
    assert diagnose(said).name == ROOT_MISSING
    said += "[   22.1] EXT4-fs (mmcblk0p1): mounted filesystem r/w with ordered data mode.\n" + "\n".join(
        f"[   {second}.1] Run /sbin/init as init process" for second in range(23, 30)
    )
    assert diagnose(said).name != ROOT_MISSING
    assert "login" in diagnose(said).name


def test_a_reset_by_software_that_nothing_follows_is_named():
    said = "The system is going down NOW!\n[   67.980333] reboot: Restarting system\n"
    assert "did not start again" in diagnose(said).name


def marks(**seconds):
    return {p: BootMark(p, round(seconds[p] * 1e9), 0, 0.0, "") for p in Phase if p in seconds}


def test_a_ram_disk_and_a_late_first_line_are_said():
    plain = marks(starting_kernel=0, first_kernel_line=0.5, root_mounted=3, init_started=4)
    assert remarks(plain) == []
    (late,) = remarks(marks(starting_kernel=1, first_kernel_line=12.25, root_mounted=13, init_started=14))
    assert "11.2 s after" in late
    (memory,) = remarks(marks(starting_kernel=0, init_started=4, root_mounted=9))
    assert "RAM disk" in memory


@pytest.mark.parametrize(
    ("os_release", "release"),
    [
        ('ID=debian\nVERSION_ID="13"\n', ""),
        ('ID=ubuntu\nVERSION_ID="24.04"\n', ""),
        ('ID=arago\nVERSION_ID="2023.10"\n', "2023.10"),
        ('ID=debian\nVERSION_ID="13"\nBUILD_ID=11.01\n', "11.01"),
    ],
)
def test_a_distributions_version_is_no_sdks(os_release, release):
    assert provenance.release(Facts(), {"os_release": os_release}) == release


def test_debians_lmbench_is_found_where_it_lies(tmp_path):
    program = tmp_path / "bin" / "arm-linux" / "bw_mem"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    search = places.FURTHER_PROGRAMS.replace("/usr/lib/lmbench", str(tmp_path))
    done = programs.run("sh", "-c", f"{search}; command -v bw_mem")
    assert done.stdout.strip() == str(program)
    assert places.FURTHER_PROGRAMS in shellstep.wrapper()
