"""`evmperf replay`: an earlier run's console, read again with today's marks and watch."""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evmperf.boards.prompts import INIT_SHELL_PROMPT, LOGIN_PROMPT
from evmperf.cli.arguments import command
from evmperf.console import record, review
from evmperf.console.review import Reviewed
from evmperf.model.errors import LabError, UsageError
from evmperf.model.outlets import line
from evmperf.model.records import BootRecord
from evmperf.runs import spool
from evmperf.runs.history import run_folder

_MOST = 5
"""Parts of a phase that are shown."""


@command("replay")
def _replay(options: argparse.Namespace) -> None:
    path = Path(options.file)
    if not path.is_file():
        path = run_folder(options.file, options.results) / "console.log"
    ends = (options.prompt,) if options.prompt else (LOGIN_PROMPT, INIT_SHELL_PROMPT)
    try:
        boots = list(_boots(path, ends))
    except (LabError, OSError, re.error) as failed:
        raise UsageError(f"{path}: cannot be replayed: {failed}") from failed
    if not boots:
        raise UsageError(f"{path}: has no power-on, so it has no boot")
    if options.json:
        print(json.dumps([_entry(boot) for boot in boots], indent=1))
        return
    for boot in boots:
        print(f"boot {boot.number}")
        begin = next(iter(boot.marks.values())).mono_ns if boot.marks else 0
        for mark in boot.marks.values():
            since, error = (mark.mono_ns - begin) / 1e9, mark.error_s * 1000
            print(f"  {mark.phase:<18}{since:>10.3f} s  within {error:.1f} ms  {mark.text[:60]}")
            for part in [part for part in boot.tree.parts if part.phase == mark.phase][:_MOST]:
                print(line(f"      {part.seconds:.3f} s {part.name} ({part.clock})"))
        if boot.alarm:
            print(f"  {boot.alarm.name}: {boot.alarm.text}")
        for note in (*boot.notes, *boot.tree.notes):
            print(line(f"  {note}"))
        for change in boot.changes or ["as recorded"]:
            print(f"  -> {change}")


def _boots(path: Path, prompts: tuple[str, ...]) -> Iterator[Reviewed]:
    """The boots of a console, beside those of the run in its folder; a file alone has none."""
    known = spool.read_records(path.parent) if (path.parent / spool.RECORDS).exists() else []
    boots = [entry for entry in known if isinstance(entry, BootRecord)]
    recorded = {mark.mono_ns: boot for boot in boots for mark in boot.marks if mark.phase == "power_on"}
    for number, records in enumerate(review.boots(record.read(path)), 1):
        yield review.review(number, records, prompts, recorded.get(records[0].mono_ns))


def _entry(boot: Reviewed) -> dict[str, Any]:
    return {
        "boot": boot.number,
        "marks": [
            {"phase": str(mark.phase), "mono_ns": mark.mono_ns, "error_s": mark.error_s, "text": mark.text}
            for mark in boot.marks.values()
        ],
        "alarm": {"name": boot.alarm.name, "text": boot.alarm.text} if boot.alarm else None,
        "notes": list(boot.notes),
        "times": list(boot.tree.notes),
        "parts": [vars(part) for part in boot.tree.parts],
        "changes": list(boot.changes),
    }
