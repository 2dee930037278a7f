"""`python -m selftests.speed [NAME...]`: measure and print one table."""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
from collections.abc import Callable

from selftests.speed import dialogue, guides, lab, sessions, stamping, store, verdicts
from selftests.speed.figures import Row, conditions, load, table

_MEASURES: dict[str, Callable[[], list[Row]]] = {
    "stamps": stamping.delays,
    "wires": stamping.wires,
    "roundtrip": dialogue.round_trip,
    "fetch": dialogue.fetch,
    "overhead": sessions.overhead,
    "collect": sessions.collect,
    "help": sessions.command_line,
    "guides": guides.speed,
    "verdicts": verdicts.quality,
    "year": verdicts.speed,
    "lines": store.lines,
    "push": store.push,
    "memory": store.memory,
    "report": store.report,
    "lab-stamps": lab.stamps,
    "lab-night": lab.night,
    "lab-kick": lab.kicks,
}


def _main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m selftests.speed",
        description="How fast evmperf itself is, against references taken in the same run.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(_MEASURES)}; default: all"
    )
    names = parser.parse_args().names or list(_MEASURES)
    if unknown := sorted(set(names) - set(_MEASURES)):
        parser.error(f"no such measure: {', '.join(unknown)}")
    # An end from outside cleans up as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    before, began = load(), time.monotonic()
    rows: list[Row] = []
    status = 0
    try:
        for name in names:
            print(f"measuring {name}, load average {load()}", file=sys.stderr, flush=True)
            try:
                rows += _MEASURES[name]()
            except Exception as error:  # noqa: BLE001  # the other figures still count
                traceback.print_exc()
                rows.append(Row(name, figure=f"not measured: {error}".split("\n")[0], met="NO"))
                status = 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        status = 130
    print(table(rows))
    print(conditions(before, time.monotonic() - began))
    return status


if __name__ == "__main__":
    sys.exit(_main())
