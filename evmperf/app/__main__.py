"""`python -m evmperf.app`: work on the request of the standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from evmperf.app import desk, lavajobs, why
from evmperf.app.requests import Cancel, FindBoard, Follow, Import, Requests, Submit, Why
from evmperf.model.errors import EvmperfError, Kind
from evmperf.model.exits import of_kind
from evmperf.model.replies import Failed, Reply

_USES: dict[type, Callable[..., Reply]] = {
    Submit: lavajobs.submit,
    Follow: lavajobs.follow,
    Import: lavajobs.read,
    Cancel: lavajobs.cancel,
    Why: why.explain,
    FindBoard: desk.find,
}


def main() -> int:
    """Reply to one request; returns the exit status that its end stands for."""
    # What a library prints must not come between the replies.
    with os.fdopen(os.dup(1), "wb", buffering=0) as replies:
        os.dup2(2, 1)

        def tell(reply: Reply) -> None:
            replies.write(msgspec.json.encode(reply) + b"\n")

        try:
            request: Any = msgspec.json.decode(sys.stdin.buffer.read(), type=Requests)
            tell(_USES[type(request)](request, tell))
        except msgspec.DecodeError as error:
            failed = Failed(kind=Kind.USAGE, sentence=f"no request of evmperf: {error}")
        except EvmperfError as error:
            failed = Failed(kind=error.kind, sentence=str(error))
        else:
            return 0
        tell(failed)
        return of_kind(failed.kind)


if __name__ == "__main__":
    sys.exit(main())
