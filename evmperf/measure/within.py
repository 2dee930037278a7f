"""Work that may never end, such as a request to a server that trickles."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Done = TypeVar("_Done")


def within(limit_s: float, work: Callable[[], _Done]) -> _Done:
    """What `work` returns or raises; raises TimeoutError after so many seconds. Nobody waits for the rest,
    not even the end of the process.
    """
    done: Future[_Done] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001  # it is raised where the answer is waited for
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return done.result(limit_s)
