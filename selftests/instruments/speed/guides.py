"""How fast guides are read and written, on guides made from baselines/."""

from __future__ import annotations

from docutils.core import publish_doctree
from evmperf_guides import importer, printed

from evmperf.judge.published import releases as gather
from evmperf.model.figures import Figure, Key
from evmperf.publish.guide import layout, writer
from selftests.instruments.speed.figures import Row, ratio
from selftests.instruments.speed.reference import seconds as timed

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
    plan = layout.own(figures)
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
    """Reading and writing a long guide, against docutils parsing it."""
    text = long_guide()
    lines = text.count("\n")
    imported = importer.interpret(text)
    figures = gather.by_board(gather.published())
    plan = layout.like(printed.of_guide(imported), figures)
    read, written, parsed = [], [], []
    for _ in range(_REPEATS):
        read.append(timed(lambda: importer.interpret(text)))
        written.append(timed(lambda: writer.render(plan, figures, writer.Head("12.00", "Linux"))))
        parsed.append(timed(lambda: _parse(text)))
    return [
        ratio(f"import of {lines} lines, {imported.cells} cells, vs docutils", read, parsed, 2),
        ratio("writing it again vs docutils", written, parsed, 1),
    ]


def _parse(text: str) -> None:
    quiet = {"report_level": 5, "halt_level": 6, "file_insertion_enabled": False}
    publish_doctree(text, settings_overrides=quiet)
