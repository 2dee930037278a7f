"""What happens to a whole session: kill -9, and a lab that cannot go on; a full disk is the same to it, see
selftests/measure/test_runner_losses.py.
"""

import pytest

from evmperf.measure.runs import spool
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


def test_a_results_folder_renamed_while_it_measures_ends_the_session(measuring, virtual_bench) -> None:
    session = measuring(SELECT)
    await_linux_case(session)
    folder = session.folder
    away = folder.rename(folder.with_name("away"))
    assert session.wait() == 3, session.said
    assert f"was renamed to {away}" in session.said
    assert not folder.exists()
    assert [result.status for result in spool.read_results(away)][:2] == ["measured", "measured"]
    assert spool.read_run(away).exit_status == 3
    assert not virtual_bench.status().power
