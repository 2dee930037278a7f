"""Console texts of a whole boot, after a real one's form, and cutting them into pieces."""

import itertools

from hypothesis import strategies as st

from selftests.support.consoles import recorded
from selftests.support.recordings import DATA

LOGIN = "login: "

# The kernel's first line is one text only when its stamp is; the second line has one of its own.
SPL, BOOT, SESSION = (recorded(DATA / f"texts/{name}.txt") for name in ("spl", "boot", "session"))
SPL_BOOT = SPL + BOOT

PANIC = b"[   20.000000] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000009\r\n"
OOPS = b"[   20.000000] Internal error: Oops: 0000000096000044 [#1] PREEMPT SMP\r\n"
BUG = b"[   20.000000] kernel BUG at mm/slub.c:4000!\r\n"
RESET = SPL_BOOT[: len(SPL)]
RESET_WITHOUT_SPL = (
    b"\r\n\r\nU-Boot 2025.01-ti (Mar 01 2025 - 10:00:01 +0000)\r\n\r\nSoC:   AM64X SR2.0 HS-FS\r\n"
)


@st.composite
def chunked(draw, text):
    """`text` in pieces as a console delivers it: a few large ones, or many small ones."""
    places = draw(st.lists(st.integers(1, len(text) - 1), max_size=12, unique=True))
    step = draw(st.sampled_from([0, 1, 2, 7, 16, 64, 255]))
    if step:
        places = sorted({*places, *range(step, len(text), step)})
    edges = [0, *sorted(places), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(edges)]
