"""What happens to a whole session: a full disk, Ctrl-C, kill -9, a lab that is not there."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from evmperf_virtual import client

from evmperf.measure.runs import spool
from evmperf.model.records import BootRecord
from evmperf.model.results import Result
from selftests.support import programs
from selftests.support.sessions import Pytest

pytestmark = pytest.mark.virtual_evm

# The second case of this takes seconds, so that there is something to interrupt.
SELECT = "uboot_emmc_raw or emmc_raw_fio"


def await_linux_case(session: Pytest) -> None:
    """Wait until U-Boot's cases are measured and the first fio case is in flight."""
    session.wait_until(lambda: len(session.measured()) == 2)
    console = session.folder / "console.log"
    session.wait_until(lambda: b"--rw=" in console.read_bytes())


def test_kill_9_keeps_what_was_measured_and_the_next_session_measures(measuring, tmp_path) -> None:
    session = measuring(SELECT)
    await_linux_case(session)
    session.process.kill()
    session.wait()
    assert [result.status for result in session.measured()] == ["measured", "measured"]
    assert spool.read_run(session.folder).outcome == ""
    after = measuring("uboot_emmc_raw", results=tmp_path / "after")
    assert after.wait() == 0, after.said


def test_a_results_folder_renamed_while_it_measures_ends_the_session(measuring) -> None:
    session = measuring(SELECT)
    await_linux_case(session)
    folder = session.folder
    away = folder.rename(folder.with_name("away"))
    assert session.wait() == 3, session.said
    assert f"was renamed to {away}" in session.said
    assert not folder.exists()
    assert [result.status for result in spool.read_results(away)][:2] == ["measured", "measured"]
    assert spool.read_run(away).exit_status == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_results_folder_ends_the_session_as_a_broken_lab(
    measuring, tmp_path: Path, virtual_bench: client.LabClient
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(small)], check=True)
    try:
        session = measuring("uboot_emmc_raw or emmc_raw_fio", results=small)
        assert session.wait() == 3, session.said
        assert "cannot be written" in session.said
        assert "free some space" in session.said
        for record in spool.read_records(session.folder):
            assert isinstance(record, BootRecord | Result)
        assert not virtual_bench.status().power
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_board_file_outside_the_checkout_selects_the_measuring_tests_only(env_file: Path) -> None:
    done = programs.pytest("--lg-env", str(env_file), "--collect-only", "-q", check=True)
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    assert tests
    # tests/test_emmc.py declares test_emmc, and so on; no selftest is named like its file.
    assert all(re.search(r"(test_\w+)\.py::\1\[", test) for test in tests)
