"""What a running system says, whether that is the image it was given, and what is known of its medium."""

import subprocess

import msgspec
import pytest

from evmperf.lab.provision import running
from evmperf.lab.provision.identity import SystemIdentity
from evmperf.lab.provision.record import Book, InstallationRecord
from evmperf.model.errors import LabError
from selftests.provision.imagelab import BANNER, RELEASE, VERSION
from selftests.provision.test_ways import board

SAYS = SystemIdentity(
    root="0badcafe-02",
    uboot=BANNER,
    kernel=RELEASE,
    kernel_version=VERSION,
    machine="am64xx-evm",
    os_release={"PRETTY_NAME": "Arago 2025.01", "VERSION_ID": "2025.01"},
)


def said(**other):
    """What SCRIPT prints on a board that runs the image."""
    parts = {
        "kernel": RELEASE,
        "kernel_version": VERSION,
        "machine": "am64xx-evm",
        "command_line": "console=ttyS2 root=PARTUUID=0badcafe-02 rw",
        "os_release": 'PRETTY_NAME="Arago 2025.01"\nVERSION_ID=2025.01',
        "own_release": "",
        "partuuid": "",
    } | other
    return "".join(f"={name}\n{value}\n\n" for name, value in parts.items())


def runs(**other):
    return running.parse(said(**other), BANNER)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_all_is_read(end):
    found = running.parse(said().replace("\n", end), BANNER)
    assert found == running.Running(**msgspec.structs.asdict(SAYS))


@pytest.mark.parametrize(
    ("other", "what", "found", "asked"),
    [
        ({"kernel": "6.6.32-ti"}, "kernel", "6.6.32-ti", RELEASE),
        ({"kernel_version": "#2 SMP"}, "build of the kernel", "#2 SMP", VERSION),
        ({"machine": "am62xx-evm"}, "machine", "am62xx-evm", "am64xx-evm"),
        ({"partuuid": "0badcafe-01"}, "root partition", "0badcafe-01", "0badcafe-02"),
        ({"os_release": "VERSION_ID=2023.10"}, "release", "2023.10", "2025.01"),
        ({"own_release": "BUILD_ID=x1"}, "release", "x1", "2025.01"),
    ],
)
def test_what_differs_is_a_lab_failure_with_both_values(other, what, found, asked):
    with pytest.raises(LabError) as failed:
        running.check(SAYS, runs(**other))
    assert f"its {what} is {found!r}, the image's is {asked!r}" in str(failed.value)


def test_an_old_u_boot_in_front_of_a_new_image_is_named_first():
    old = msgspec.structs.replace(runs(kernel="6.6.32-ti"), uboot="U-Boot 2024.04 (May 02 2024)")
    with pytest.raises(LabError, match=r"its U-Boot is 'U-Boot 2024\.04.*eMMC boot partition"):
        running.check(SAYS, old)
    with pytest.raises(LabError, match="its kernel is"):
        running.check(SAYS, old, own_loader=False)


def test_lsblk_says_the_root_or_the_kernel_s_argument():
    line = "root=PARTUUID=076C4A2A-02 rw"
    assert runs(command_line=line).root == "076c4a2a-02"
    assert runs(command_line=line, partuuid="aaaa-bbbb").root == "aaaa-bbbb"
    assert runs(command_line="root=/dev/mmcblk1p2").root == ""


def test_the_script_runs_in_any_shell_here():
    """Real kernel, mount table and os-release: those of this machine."""
    for shell in (["sh", "-c"], ["bash", "-c"]):
        done = subprocess.run([*shell, running.SCRIPT], capture_output=True, text=True, check=False)
        found = running.parse(done.stdout, "")
        here = subprocess.run(["uname", "-rv"], capture_output=True, text=True, check=True)
        assert f"{found.kernel} {found.kernel_version}" == here.stdout.strip()
        assert found.os_release["PRETTY_NAME"]


def test_the_last_boot_s_u_boot_counts():
    lines = ["U-Boot SPL 2025.01 (Jan 01 2025 - 00:00:00 +0000)", "U-Boot 2025.01 (Jan 01 2025 - x)"]
    assert running.banner([*lines, "noise"]) == lines[1]
    assert running.banner([lines[1], "U-Boot 2025.04 (Jan 02 2025 - x)"]).startswith("U-Boot 2025.04")
    assert running.banner(lines[:1]) == ""


# The record

A = ("a.wic", "a" * 64)
LEFT = InstallationRecord(*A, booted=True, medium="cid1", mounts=7, starts=2)


@pytest.fixture
def book(tmp_path, monkeypatch):
    monkeypatch.setenv("EVMPERF_STATE", str(tmp_path / "state"))
    return Book(board(tmp_path))


@pytest.mark.parametrize(
    ("medium", "mounts", "said"),
    [
        ("cid1", 9, ""),
        ("cid1", 8, ""),  # one start got no further than U-Boot
        ("cid1", 10, "10, not 7 to 9: somebody else"),
        ("cid1", 1, "is 1, not 7 to 9"),  # counted anew: checked or made again
        ("cid2", 9, "cid2, not cid1"),
        ("", 9, "none, not cid1"),
        ("cid1", None, "is None, not 7 to 9"),
    ],
)
def test_a_medium_that_is_not_as_it_was_left_is_told(medium, mounts, said):
    reason = LEFT.why_other(medium, mounts)
    assert said in reason
    assert bool(reason) == bool(said)


def test_a_record_of_another_version_is_none(book):
    book.begins(*A)
    text = book.file.read_text()
    for wrong in (text.replace('"schema":3', '"schema":2'), "{"):
        book.file.write_text(wrong)
        assert book.read() == InstallationRecord()
