"""What looking at the board around cases costs, as a share of the cases."""

import tempfile
import time
from pathlib import Path

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Place
from evmperf.measure import shellstep
from evmperf.measure.around import STATE
from evmperf.measure.runner import Runner
from evmperf.measure.runs.spool import Spool
from evmperf.model.run import Run
from selftests.instruments import why_faults
from selftests.instruments.speed.figures import Row, met, seconds

_GOAL = 0.02


class Timed:
    """Steps, and the seconds of those that are looks."""

    install = staticmethod(shellstep.install)

    def __init__(self):
        self.looked_s: list[float] = []

    def run(self, *given, **named):
        """See `evmperf.measure.shellstep`."""
        began = time.perf_counter()
        output = shellstep.run(*given, **named)
        if named.get("label", "").startswith(STATE):
            self.looked_s.append(time.perf_counter() - began)
        return output


def share():
    """The looks of `-k emmc` (Linux, quick profile) on the virtual EVM against the cases' time."""
    with tempfile.TemporaryDirectory() as folder, why_faults.board(Path(folder)) as there:
        steps = Timed()
        spool = Spool(Path(folder), Run("looks", "virtual-evm", "quick"))
        tools = ["dd", "fio", "mpstat", "mkfs.ext2", "mkfs.ext4", "mkfs.vfat"]
        runner = Runner(there.bench, spool, "quick", tools, steps=steps, looks=True)
        there.bench.shell()
        began, count = time.perf_counter(), 0
        for table in catalogue.benchmarks().values():
            if table.driver == "emmc" and table.place is Place.SHELL:
                for case in table.cases("quick"):
                    count += runner.measure(table, case).samples != ()
        whole_s = time.perf_counter() - began
    looked_s = sum(steps.looked_s)
    part = looked_s / whole_s
    what = f"{len(steps.looked_s)} looks / {count} cases of -k emmc"
    return [
        Row(what, seconds(looked_s), seconds(whole_s), f"{part:.1%}", f"<= {_GOAL:.0%}", met(part, _GOAL))
    ]
