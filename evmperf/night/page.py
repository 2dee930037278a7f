"""The pages of a night."""

import time
from typing import Any

from evmperf.benchmarks import wording
from evmperf.keeping.hold import clock
from evmperf.pages import look
from evmperf.pages.templates import environment


def render(template: str, **values: Any) -> str:
    """A page; raises jinja2's errors for a template that is wrong."""
    templates = environment("evmperf.night")
    templates.filters |= {
        "clock": lambda seconds: clock(seconds) if seconds else "",
        "clock_s": lambda seconds: time.strftime("%H:%M:%S", time.localtime(seconds)),
    }
    return templates.get_template(template).render(
        look=look.inline(plots=False), figure=wording.figure, **values
    )
