"""perf on a virtual EVM: what makes a board slow on purpose is named by its symbol."""

import re
from pathlib import Path

import pytest

from evmperf.benchmarks.tools import perf
from evmperf.measure.hostload import slowness
from evmperf.model.results import Status
from selftests.support import programs, virtualbench
from selftests.support.sessions import Pytest

pytestmark = pytest.mark.virtual_evm

BENCHMARK = "openssl_cpu_load"
CASE = f"{BENCHMARK} aes-128-cbc"
SELECT = f"{BENCHMARK} and aes-128-cbc"
"""Its tool works for seconds; of a raw read of OSPI, over in a tenth of one, perf took six samples."""
BUSY = "run:dd if=/dev/urandom of=/dev/null bs=1M >/dev/null 2>&1 &"
"""A process that keeps a CPU in the kernel's generator of random numbers, which is ChaCha20."""


def test_the_symbol_of_a_busy_kernel_path_is_named_beside_a_good_run(tmp_path: Path) -> None:
    with virtualbench.running("virtual-ospi", "perf") as bench:
        board = virtualbench.board_file(bench, "virtual-ospi", tmp_path)
        board.write_text(board.read_text().replace("features: [boot, ospi]", "features: [boot, crypto]"))
        good = Pytest(board, tmp_path / "good", SELECT, ["--perf"])
        assert good.process.wait(300 * slowness()) == 0, good.said
        slow = Pytest(board, tmp_path / "slow", SELECT, ["--vary", BUSY])
        assert slow.process.wait(300 * slowness()) == 0, slow.said
        words = [CASE, "--profile", "--against", str(good.folder), "--lg-env", str(board)]
        words += ["--results", str(tmp_path / "again")]
        done = programs.evmperf("why", str(slow.folder), *words, check=True)
    (measured,) = [result for result in good.measured() if result.benchmark == BENCHMARK]
    assert measured.status == Status.MEASURED
    assert measured.conditions["perf"]
    found = re.search(r"(chacha\w*) +(\d+\.\d)% +(\d+\.\d)%", done.stdout)
    assert found, done.stdout
    assert float(found[2]) > 5 * float(found[3])
    (folded,) = (tmp_path / "again").glob(f"*/{perf.FOLDED}")
    assert re.search(r"^dd;.*;chacha\w* \d+$", folded.read_text(), re.M), done.stdout
