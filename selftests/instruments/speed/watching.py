"""What being asked for further ends costs a board, by a clock that counts its instructions.

Wall time cannot show 1 % on a host of two cores, where the board pays for the asker's work, too. This clock
goes 2 ns an instruction, as on a core of 500 MIPS, slower than an EVM's. The waits, which are the host's, are
left out.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from dataclasses import replace
from unittest import mock

from evmperf.boards import board as board_files
from evmperf.boards import ends
from evmperf.boards.console import tree
from evmperf.boards.console.marks import Phase
from evmperf.explain import ranges
from evmperf.measure.runs import spool
from selftests.instruments.speed.boards import virtual_board
from selftests.instruments.speed.figures import Row, seconds
from selftests.support import virtualbench

_PAIRS = 6
_T = 2.571
"""Student's t of 95 % for so many pairs."""
_MOST = 0.01
_HOST = "192.168.100.2"
_LAST = r"last=line:ready [\d.]+ \d+ \d+"
"""What the board says just before the prompt: seconds, and hundredths of them in which it waited."""
_ENDS = (f"net=ping:{_HOST}", f"port=tcp:{_HOST}:8080", f"web=http://{_HOST}:8080/ready")
_SLOWER = """
import sys
from evmperf.lab import answering
for name in vars(answering):
    if name.endswith("_NS"):
        setattr(answering, name, int(getattr(answering, name) * float(sys.argv[1])))
answering.main(sys.argv[-1])
"""
"""Asks as a real board is asked, by the board's clock, which goes so many times slower than ours."""
_SERVICE = f"""#!/bin/sh
work() {{ for i in $(seq 200); do grep -q root /etc/passwd; done; }}
rm -f /root/www/ready
ip addr add {_HOST}/24 dev eth0
work; work
httpd -p 8080 -h /root/www
work
touch /root/www/ready
work
read up _ </proc/uptime
read _ _ _ _ idle io _ </proc/stat
echo "ready $up $idle $io" >/dev/kmsg
"""
"""The half of the boot with a network: a port refuses, then a page is missing, then all answer."""

_MODULE = "#!/bin/sh\nmodprobe dummy numdummies=$(cat /root/count)\n"
"""An initcall that lasts as long as it makes interfaces."""
_SERIES = {"ref": (ranges.REFERENCE_BOOTS, 200), "same": (3, 200), "slower": (3, 210)}
"""Boots of each session, and the interfaces of each boot."""


def boot_time() -> list[Row]:
    """Boots that are asked for three ends over the network and boots that are not, in turns after a first."""
    times: dict[bool, list[float]] = {True: [], False: []}
    more: list[float] = []  # often asked than meant, by a host that became slower; each question is paid
    with virtual_board(counted=True) as board, virtualbench.reached(board.env_file) as bench:
        virtualbench.starts(bench.shell(), "wait", _SERVICE)
        plain = ends.checked(board_files.load(board.env_file), [_LAST])
        beside, slower = bench._words_beside(), 0.0
        for is_asked in (False, *(False, True, True, False) * (_PAIRS // 2)):
            bench.board = plain
            if is_asked:
                asked = ends.checked(plain, _ENDS)
                for end in asked.sections["boot"]["ends"].values():
                    end["interval_ms"] = round(ends._INTERVAL_MS * slower)
                bench.board = replace(asked)
            words = [*beside, sys.executable, "-c", _SLOWER, str(slower)]
            with mock.patch.object(bench, "_words_beside", lambda words=words: words):
                boot = bench.cold_boot("")
            if boot.error or boot.missed:
                raise boot.error or RuntimeError(str(boot.missed))
            last = boot.ends["last"]
            up_s, *waited = map(float, last.text.split()[1:])
            times[is_asked].append(up_s - sum(waited) / 100)
            ratio = (last.mono_ns - boot.marks[Phase.STARTING_KERNEL].mono_ns) / 1e9 / up_s
            if is_asked:
                more.append(ratio / slower)
            else:
                slower = ratio
    pairs = zip(times[True], times[False][1:], more, strict=True)
    changes = [(one / other - 1) / often for one, other, often in pairs]
    mean, half = statistics.mean(changes), _T * statistics.stdev(changes) / _PAIRS**0.5
    met = "yes" if abs(mean) + half <= _MOST else "NO" if abs(mean) - half > _MOST else "not told"
    with_ends, without = (seconds(statistics.median(times[is_asked])) for is_asked in (True, False))
    what = f"a board's work until it is ready, {len(_ENDS)} ends asked, {_PAIRS} pairs of boots"
    return [Row(what, with_ends, f"without {without}", f"{mean:+.2%} +- {half:.2%}", f"+- {_MOST:.0%}", met)]


def reference() -> list[Row]:
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
