"""Why a transfer over TFTP failed, from U-Boot's output."""

import re
from collections.abc import Sequence

_NOTHING = re.compile(r"Retry count exceeded|TFTP server died|\bT( T)+\s*$", re.MULTILINE)
"""What U-Boot prints when nothing comes any more (net/tftp.c, net/arp.c)."""
_REFUSED = re.compile(r"TFTP error: .*")
_BEGUN, _ENDED = "Loading: ", "Bytes transferred"
"""Before the marks (#) of a transfer's progress, and behind it (net/tftp.c, net/net.c)."""


def trouble(console: Sequence[str]) -> str:
    """Why the last transfer in a console failed, and the remedy; "" if it did not fail."""
    said = "\n".join(console)
    _, begun, last = said.rpartition(_BEGUN)
    said = last if begun else said
    if refused := _REFUSED.search(said):
        return f"{refused[0].strip()}; are the files where the server looks?"
    if _NOTHING.search(said):
        stopped = "the server stopped in mid-transfer"
        what = stopped if "#" in last else "the server sends nothing"
        return f"{what}; check that it runs, and the cable"
    if begun and _ENDED not in last:
        return "the transfer did not end in time: the server or the network is slow"
    return ""
