"""Guides made from baselines/: text to import."""

from evmperf.judge.published import releases as gather
from evmperf.publish.guide import layout, writer


def texts():
    """A guide of each release in baselines/."""
    made = {}
    there = gather.published()
    for release, os in sorted({(entry.run.release, entry.run.os) for entry in there}):
        figures = gather.by_board([e for e in there if (e.run.release, e.run.os) == (release, os)])
        made[release] = writer.render(layout.own(figures), figures, writer.Head(release, os))
    return made
