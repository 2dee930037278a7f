"""`python -m evmperf.commands.app`: work on the request of the standard input."""

import functools
import logging
import operator
import os
import sys
from typing import Any, get_type_hints

import msgspec

from evmperf.commands.app import desk, judging, lavajobs, publishing, why
from evmperf.commands.app.requests import Hear
from evmperf.measure.signals import Signals
from evmperf.model.errors import EvmperfError, Kind
from evmperf.model.exits import ExitStatus, of_kind
from evmperf.model.replies import Failed, Remark, Reply

_USES: dict[type, Any] = {
    get_type_hints(use)["request"]: use
    for use in (
        *(lavajobs.submit, lavajobs.follow, lavajobs.read, lavajobs.cancel, why.explain, desk.find),
        *(judging.check, publishing.guide, publishing.push, publishing.site, publishing.keep),
    )
}
"""What works on each kind of request."""
_REQUESTS: Any = functools.reduce(operator.or_, _USES)


class _Remarks(logging.Handler):
    """Makes remarks of what is logged, as of old runs that are left out."""

    def __init__(self, hear: Hear) -> None:
        super().__init__(logging.WARNING)
        self._hear = hear

    def emit(self, record: logging.LogRecord) -> None:
        """Tell one."""
        self._hear(Remark(sentence=record.getMessage().removeprefix("evmperf: ")))


def main() -> int:
    """Reply to one request; returns the exit status that its end stands for."""
    # What a library prints must not come between the replies.
    with os.fdopen(os.dup(1), "wb", buffering=0) as replies:
        os.dup2(2, 1)

        def tell(reply: Reply) -> None:
            replies.write(msgspec.json.encode(reply) + b"\n")

        logging.getLogger("evmperf").addHandler(_Remarks(tell))
        try:
            request: Any = msgspec.json.decode(sys.stdin.buffer.read(), type=_REQUESTS)
            with Signals().watching():
                tell(_USES[type(request)](request, tell))
        except KeyboardInterrupt:
            return ExitStatus.INTERRUPTED
        except msgspec.DecodeError as error:
            failed = Failed(kind=Kind.USAGE, sentence=f"not a valid evmperf request: {error}")
        except EvmperfError as error:
            failed = Failed(kind=error.kind, sentence=str(error))
        else:
            return 0
        tell(failed)
        return of_kind(failed.kind)


if __name__ == "__main__":
    sys.exit(main())
