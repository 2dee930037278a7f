"""LAVA's kinds of failure in evmperf's words: who has to act on a job that did not complete."""

import re

from evmperf.console.watch import Watch
from evmperf.lava import script
from evmperf.lava.joblog import LogEntry, job_result
from evmperf.model.errors import BoardError, EvmperfError, LabError, ToolError, UsageError

CANCELLED = "the LAVA job was cancelled"

# lava_common/exceptions.py of LAVA 2023.01. "Job" is whatever came of the job itself: mostly the
# board, but also what the job's author wrote or named.
_LAB = ("Infrastructure", "Configuration", "Bug", "MultinodeTimeout")
_AUTHOR = re.compile(r"Invalid job|validat|not found in supported|Resource .*(unavailable|not)", re.I)
_DEPLOYING = re.compile(r"download|deploy|tftp|overlay|compress|extract", re.I)
_BROKEN = (script.NO_CHECKOUT, script.LAB_BROKEN, script.NOT_RUN, script.NO_OVERLAY, script.OTHER_IMAGE)
_UBOOT = re.compile(r"U-Boot 20\d\d\.\d\d.*")


def failure(entries: list[LogEntry]) -> EvmperfError | None:
    """The reason of a job's failure, None for a complete one; a kernel panic is the board's."""
    last = job_result(entries)
    if last and last.get("result") == "pass":
        return None
    if last is None:
        return LabError("LAVA lost the job: its log ends without a result; submit it again")
    kind = str(last.get("error_type", ""))
    message = " ".join(str(last.get("error_msg") or "no reason given").split())[:300]
    if kind == "Canceled":
        return LabError(CANCELLED)
    if alarm := _alarm(entries):
        return BoardError(f"{alarm} (LAVA: {message})")
    return _sorted(kind, message)


def other_loader(entries: list[LogEntry], asked: str) -> LabError | None:
    """Why the board did not start by its image's U-Boot (banner `asked`); None if it did, or unknown."""
    said = [match[0] for entry in entries if (match := _UBOOT.search(entry.text))]
    if not asked or not said or asked in said[-1]:
        return None
    return LabError(
        f"the board did not boot the image it was given: its U-Boot is {said[-1].strip()!r}, the "
        f"image's is {asked!r}: does it start from another medium?"
    )


def _sorted(kind: str, message: str) -> EvmperfError:
    if kind == "Test" and any(word in message for word in _BROKEN):
        return LabError(f"the LAVA job says: {message}")
    if kind in _LAB or _DEPLOYING.search(message):
        return LabError(f"LAVA: {kind}: {message}")
    # "LAVATimeout" is of the test shell, whose steps all end in their time on a living board.
    if kind == "Test":
        return ToolError(f"LAVA: {message}")
    if _AUTHOR.search(message):
        return UsageError(f"LAVA refuses the job: {message}")
    return BoardError(f"LAVA: {message}")


def _alarm(entries: list[LogEntry]) -> str:
    """The first panic or oops on the console since the last power cycle."""
    watch = Watch()
    said = ""
    for entry in entries:
        if " reset-device" in entry.text and entry.text.startswith("start: "):
            watch.restart()
            said = ""
        elif entry.level == "target" and not said:
            alarm = watch.feed(f"{entry.text}\r\n".encode())
            if alarm and alarm.name != "silent reset":
                said = f"{alarm.name} on the console: {alarm.text}"
    return said
