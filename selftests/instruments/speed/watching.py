"""What watching for further ends costs a boot."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

from evmperf.boards import board as board_files
from evmperf.boards import ends
from evmperf.boards.console.marks import Phase
from evmperf.boards.console.marks import seconds as between
from selftests.instruments.speed.boards import labgrid_bench, virtual_board
from selftests.instruments.speed.figures import Row, seconds

_PAIRS = 10
_T = 2.262
"""Student's t of 95 % for so many pairs."""
_MOST = 0.01
_HOST = "192.168.100.2"
"""Nobody answers there, so all questions are asked until the end."""
_ENDS = ("app=line:^never", f"net=ping:{_HOST}", f"port=tcp:{_HOST}:80", f"web=http://{_HOST}/")


def boot_time() -> list[Row]:
    """Boots with and without four ends, in turns."""
    times: dict[bool, list[float]] = {True: [], False: []}
    with virtual_board() as board, labgrid_bench(board) as bench:
        plain = board_files.load(board.env_file)
        asked = ends.checked(plain, _ENDS)
        for end in asked.sections["boot"]["ends"].values():
            end["within_s"] = 1
        asked = replace(asked)
        for pair in range(_PAIRS):
            for is_watched in (pair % 2 == 0, pair % 2 == 1):
                bench.board = asked if is_watched else plain
                boot = bench.cold_boot("")
                if boot.error:
                    raise boot.error
                times[is_watched].append(between(boot.marks, Phase.STARTING_KERNEL, Phase.PROMPT) or 0.0)
    changes = [one / other - 1 for one, other in zip(times[True], times[False], strict=True)]
    mean, half = statistics.mean(changes), _T * statistics.stdev(changes) / math.sqrt(_PAIRS)
    met = "yes" if abs(mean) + half <= _MOST else "NO" if abs(mean) - half > _MOST else "not told"
    with_ends, without = (seconds(statistics.median(times[is_watched])) for is_watched in (True, False))
    what = f"boot time with {len(_ENDS)} ends watched, {_PAIRS} pairs of boots"
    return [Row(what, with_ends, f"without {without}", f"{mean:+.2%} +- {half:.2%}", f"+- {_MOST:.0%}", met)]
