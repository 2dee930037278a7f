"""Whether a reference of boots names an initcall that takes 5 % longer, by a clock that counts instructions.

Wall time varies by more on a host of two cores. This clock goes 2 ns an instruction, as a core of 500 MIPS.
"""

import subprocess
import sys

from evmperf.boards.console import tree
from evmperf.explain import ranges
from evmperf.measure.runs import spool
from selftests.instruments.speed.boards import virtual_board
from selftests.instruments.speed.figures import Row
from selftests.support import virtualbench

_MODULE = "#!/bin/sh\nmodprobe dummy numdummies=$(cat /root/count)\n"
"""An initcall that lasts as long as it makes interfaces."""
_SERIES = {"ref": (ranges.REFERENCE_BOOTS, 200), "same": (3, 200), "slower": (3, 210)}
"""Boots of each session, and the interfaces of each boot."""


def reference():
    """Three boots as a reference's and three whose one initcall takes 5 % longer, held against it."""
    rows: list[Row] = []
    with virtual_board(counted=True) as board:
        results, file = board.folder / "results", board.folder / "boots.ref"
        for name, (boots, count) in _SERIES.items():
            with virtualbench.reached(board.env_file) as bench:
                if name == "ref":
                    virtualbench.starts(bench.shell(), "wait", _MODULE)
                bench.shell().run(f"echo {count} >/root/count; sync", 60)
            words = [f"--lg-env={board.env_file}", "-k", "boot_time", f"--boots={boots}", f"--run-id={name}"]
            words += ["--profile=quick", f"--results={results}", f"--vary=args:{tree.TIMED}"]
            command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
            subprocess.run(command, check=True, stdout=sys.stderr, cwd=board.folder)
            run = spool.read_run(results / name)
            if name == "ref":
                ranges.write(file, [results / name])
                continue
            said, _ = ranges.held(results / name, run, ranges.read(file, run.board))
            slower = [text.split()[2] for text in said if text.startswith("  slower: initcall")]
            wanted = ["dummy_init_module"] * (name == "slower")
            what = f"initcalls named slower than a reference's in {boots} boots ({name})"
            named, goal = (", ".join(words) or "none" for words in (slower, wanted))
            rows.append(Row(what, named, goal=goal, met="yes" if slower == wanted else "NO"))
    return rows
