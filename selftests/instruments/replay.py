"""Play a recorded console behind a port and a switch of its own to evmperf's strategy, react to what
is typed, and print marks, attempts and verdict.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from selftests.instruments import command
from selftests.support.replayboard import Play, recorded, replay


def main(words: Sequence[str] | None = None) -> int:
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument(
        "file", type=Path, help="a console.log, whose time stamps are kept, or a console as text"
    )
    parser.add_argument("--board", default="am64x.yaml", help="the board's file (%(default)s)")
    parser.add_argument("--goal", choices=("uboot", "booted"), default="booted")
    parser.add_argument("--arguments", default="", help="kernel arguments")
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args(words)
    logging.disable(logging.CRITICAL)  # the outcome says it all
    recording = recorded(options.file)
    outcome = replay(
        Play(recording.text, pauses=recording.pauses),
        options.board.removesuffix(".yaml"),
        goal=options.goal,
        arguments=options.arguments,
    ).as_dict()
    if options.json:
        print(json.dumps(outcome, indent=1))
    else:
        for name, value in outcome.items():
            print(f"{name:24}{value}")
    return 0 if outcome["verdict"] != "failed" else 1


if __name__ == "__main__":
    sys.exit(main())
