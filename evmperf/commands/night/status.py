"""The pages of a night, and its state as JSON; they need no server."""

import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from evmperf.benchmarks import wording
from evmperf.commands.night.child import measured_in
from evmperf.commands.night.conductor import Doing, NightConductor, Progress
from evmperf.commands.night.health import Health
from evmperf.lab.keeping import claim, locks
from evmperf.lab.keeping.wanted import HoldRecord, clock
from evmperf.measure.runs.spool import RECORDS, write_whole
from evmperf.model.errors import EvmperfError
from evmperf.publish.pages import look

EVERY_S = 2.0
"""Seconds between updates; the page reloads itself as often."""

GONE_S = 30.0
"""Seconds after which a page without an update shows that its night was killed."""

_NOTHING = {"doing": "", "since": 0.0, "until": 0.0}


def render(template: str, **values: object) -> str:
    """A page; raises jinja2's errors for a template that is wrong."""
    look.environment().filters |= {
        "clock": lambda seconds: clock(seconds) if seconds else "",
        "clock_s": lambda seconds: time.strftime("%H:%M:%S", time.localtime(seconds)),
    }
    shared = {"look": look.inline(plots=False), "figure": wording.figure}
    return look.render(f"commands/night/{template}", **shared, **values)


class StatusPage:
    """Writes status.json and status.html into the night's folder until it is closed."""

    def __init__(self, night: NightConductor, began: float) -> None:
        self._night, self._began = night, began
        self._coordinators = night.coordinators
        self._counted: dict[str, tuple[int, int]] = {}
        self._ended = threading.Event()
        self._known: list[dict[str, Any]] = []
        # A slow or missing coordinator does not delay the page.
        self._threads = [
            threading.Thread(target=self._every, args=[work], name="status", daemon=True)
            for work in (self._look, self._write)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Write it a last time."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        self._look()
        self._write()

    def expected_end(self) -> str:
        """When all jobs should be measured, as the end of a sentence; "" while unknown."""
        held = {record.place: record for record in locks.held()}
        jobs = [self._job(progress, held) for progress in self._night.progress]
        # Before its session begins, a board is held for the whole night.
        ends_s = [job["until"] for job in jobs if job["doing"] and job["until"]]
        if not ends_s:
            return ""
        waits = any(not p.done for p in self._night.progress if p.state is not Doing.MEASURING)
        return f"expected end {'after ' if waits else ''}{clock(max(ends_s))}"

    def record(self) -> dict[str, object]:
        """Everything that is shown."""
        held = {record.place: record for record in locks.held()}
        progress = self._night.progress
        return {
            "night": self._night.journal.id,
            "began": self._began,
            "until": self._night.until,
            "updated": time.time(),
            "ended": self._ended.is_set(),
            "every_s": EVERY_S,
            "gone_s": GONE_S,
            "states": dict(Counter(job.state for job in progress)),
            "done": sum(job.done for job in progress),
            "expected": "" if self._ended.is_set() else self.expected_end(),
            "jobs": [self._job(job, held) for job in progress],
            "places": [_place(place, held, place["coordinator"]) for place in self._known],
        }

    def _every(self, work: Callable[[], None]) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(EvmperfError, OSError):
                work()
            self._ended.wait(EVERY_S)

    def _look(self) -> None:
        """Ask the coordinators for their places."""
        places: list[dict[str, object]] = []
        for coordinator in sorted(self._coordinators):
            with contextlib.suppress(EvmperfError):
                places += [{**place, "coordinator": coordinator} for place in claim.places(coordinator)]
        self._known = places

    def _write(self) -> None:
        record = self.record()
        folder = self._night.journal.folder
        page, data = render("status.html.j2", status=record), json.dumps(record, indent=1)
        write_whole(folder / "status.html", page.encode(), sync=False)
        write_whole(folder / "status.json", f"{data}\n".encode(), sync=False)

    def _job(self, progress: Progress, held: Mapping[str, HoldRecord]) -> dict[str, Any]:
        works = progress.state in (Doing.MEASURING, Doing.CHECKING)
        now = held.get(progress.place) if works else None
        return {
            "job": progress.job.name,
            "board": progress.job.board,
            "place": progress.place,
            "state": progress.state,
            "sentence": progress.sentence,
            "runs": list(progress.runs),
            **_activity(now),
            "page": progress.page,
            "measured": sum(self._measured(run) for run in list(progress.runs)),
        }

    def _measured(self, run: str) -> int:
        """How many cases a run has measured; counted again when its file has grown."""
        folder = self._night.results / run
        with contextlib.suppress(OSError):
            size = (folder / RECORDS).stat().st_size
            if self._counted.get(run, (-1, 0))[0] != size:
                self._counted[run] = size, len(measured_in(folder))
        return self._counted.get(run, (0, 0))[1]


def _activity(record: HoldRecord | None) -> dict[str, Any]:
    return {name: getattr(record, name, usual) for name, usual in _NOTHING.items()}


def _place(place: Mapping[str, Any], held: Mapping[str, HoldRecord], coordinator: str) -> dict[str, Any]:
    health = Health.of_tags(place["tags"])
    record = held.get(place["name"]) or claim.holder(place, coordinator)
    return {
        "place": place["name"],
        "holder": record.by if record else "",
        "run": record.run if record else "",
        **_activity(record),
        "health": str(health.state),
        "why": health.why,
        "ready": place["ready"],
    }
