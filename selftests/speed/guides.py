"""How fast guides are read and written, on guides made from baselines/."""

from __future__ import annotations

import time
from collections.abc import Callable

from evmperf.guide import importer, layout, writer
from evmperf.model.figures import Figure, Key
from evmperf.published import dialect
from evmperf.published import releases as gather
from selftests.speed.figures import Row, met, seconds

_LINES = 2000
_REPEATS = 5


def texts() -> dict[str, str]:
    """A guide of each release in baselines/."""
    made = {}
    there = gather.published()
    for release, os in sorted({(entry.run.release, entry.run.os) for entry in there}):
        entries = [e for e in there if (e.run.release, e.run.os) == (release, os)]
        made[release] = render(gather.by_board(entries), release, os)
    return made


def render(figures: dict[str, dict[Key, Figure]], release: str, os: str) -> str:
    plan = layout.own(figures, dialect.of_release(release, os))
    return writer.render(plan, figures, writer.Head(release, os))


def long_guide() -> str:
    """One guide of at least 2000 lines: a section for each of ten boards' own tables."""
    there = gather.published()
    figures = gather.by_board(there)
    whole = render(figures, "12.00", "Linux")
    body = whole[whole.index("System Benchmarks") :]
    parts = [whole]
    while sum(part.count("\n") for part in parts) < _LINES:
        # Other boards' names, or the same figures would be met twice.
        parts.append(body.replace(": ", f"-{len(parts)}: "))
    return "\n".join(parts)


def speed() -> list[Row]:
    text = long_guide()
    lines = text.count("\n")
    imported = importer.interpret(text)
    figures = gather.by_board(gather.published())
    read = _best(lambda: importer.interpret(text))
    plan = layout.like(imported, figures)
    written = _best(lambda: writer.render(plan, figures, writer.Head("12.00", "Linux")))
    return [
        Row(
            f"import a guide of {lines} lines, {imported.cells} cells",
            seconds(read), figure=seconds(read), goal="<= 1 s", met=met(read, 1.0),
        ),
        Row("render it", seconds(written), figure=seconds(written), goal="<= 2 s",
            met=met(written, 2.0)),
    ]  # fmt: skip


def _best(action: Callable[[], object]) -> float:
    def once() -> float:
        began = time.perf_counter()
        action()
        return time.perf_counter() - began

    return min(once() for _ in range(_REPEATS))
