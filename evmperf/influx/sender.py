"""Sending during a run, in a thread of its own, so that no measurement ever waits for a server."""

import contextlib
import threading
from pathlib import Path

from evmperf.influx import config as configs
from evmperf.influx.client import Store
from evmperf.influx.config import Config
from evmperf.influx.push import REFUSED, PushProgress, RunPush
from evmperf.model.errors import EvmperfError, UsageError
from evmperf.runs import spool

_RETRY_S = 30.0
"""How long a server that failed is left alone during a run."""


def waiting(results: Path, key: str, *, begun: bool) -> list[Path]:
    """Runs that are not whole in the bucket `key`, oldest first; with `begun`, only begun ones."""
    found = []
    for path in results.glob("*/run.json"):
        folder = path.parent
        progress = PushProgress.of(folder, key)
        if (not begun or progress.begun) and not (progress.complete and _is_through(progress)):
            found.append(folder)
    return sorted(found, key=lambda folder: (folder / "run.json").stat().st_mtime)


def send_if_named(folder: Path) -> str:
    """Send the news of an ended run, if InfluxDB is configured; returns the error's sentence, or ""."""
    try:
        named = configs.load()
        if named is None:
            return ""
        with Store(named) as store:
            refused = RunPush.of(store, folder).send().refused
    except EvmperfError as error:
        return str(error)
    return refused_text(folder, refused)


def refused_text(folder: Path, refused: int) -> str:
    """That the server would not have some points of a run, a sentence; "" for none."""
    if not refused:
        return ""
    return f"{folder / REFUSED}: {refused} points were refused by the server; the file says why"


def _is_through(progress: PushProgress) -> bool:
    records = progress.folder / spool.RECORDS
    return not records.exists() or progress.offset >= records.stat().st_size


class Sender:
    """Sends one run while it is measured, after earlier runs' waiting points, in a thread that reads the
    disk: a failing server costs a retry, and the run nothing.
    """

    def __init__(self, config: Config, folder: Path, timeout_s: float = 20.0) -> None:
        self.problem = ""
        """Why the last attempt failed, "" when it did not."""
        self._config = config
        self._folder = folder
        self._timeout_s = timeout_s
        self._points = 0
        self._refused = 0
        self._complete = False
        self._something_new = threading.Event()
        self._ending = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="influx", daemon=True)
        PushProgress.of(folder, config.key).save()
        self._thread.start()

    def wake(self) -> None:
        """Something more is on the disk; returns at once."""
        self._something_new.set()

    def finish(self, wait_s: float) -> str:
        """The run has ended: send the rest for at most so long; returns how it went, a sentence."""
        self._ending.set()
        self._something_new.set()
        self._ended.wait(wait_s)
        where = f"InfluxDB {self._config.url}"
        refused = f", {self._refused} refused" if self._refused else ""
        if self._complete:
            return f"{where}: {self._points} points sent{refused}."
        undone = "nothing to send" if self._ended.is_set() else f"still sending after {wait_s:g} s"
        cause = self.problem or f"{where}: {undone}"
        return f"{cause}. Nothing is lost: `evmperf push` or the next run sends the waiting points."

    def _work(self) -> None:
        try:
            with Store(self._config, self._timeout_s) as store:
                live = RunPush.of(store, self._folder)
                older_sent = False
                while not self._complete:
                    self._something_new.wait()
                    self._something_new.clear()
                    last = self._ending.is_set()
                    try:
                        if not older_sent:
                            self._send_older(store)
                            older_sent = True
                        self._send_live(live)
                    except EvmperfError as error:
                        self.problem = str(error)
                        # Lets `finish` through at once, and what is new meanwhile wait.
                        self._ending.wait(_RETRY_S)
                        self._something_new.set()
                    if last:
                        return
        finally:
            self._ended.set()

    def _send_older(self, store: Store) -> None:
        for folder in waiting(self._folder.parent, store.config.key, begun=True):
            if folder != self._folder and not spool.is_live(folder):
                # A damaged run is `evmperf push`'s to complain about.
                with contextlib.suppress(UsageError, FileNotFoundError):
                    RunPush.of(store, folder).send()

    def _send_live(self, live: RunPush) -> None:
        pushed = live.send()
        self._points += pushed.points
        self._refused += pushed.refused
        self._complete = pushed.complete
        self.problem = ""
