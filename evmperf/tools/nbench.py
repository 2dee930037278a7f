"""NBench (`runNBench.sh`, Mayer's Unix port of BYTEmark 2): its table of rates."""

from __future__ import annotations

import re

from evmperf.model.errors import RefusedOutput

_NUMBER = r"\d+(?:\.\d+)?(?:e[+-]\d+)?"
_ROW = re.compile(rf"^([A-Z][A-Z ]*?) *: +({_NUMBER}) +: +{_NUMBER} +: +{_NUMBER}$", re.MULTILINE)
_KERNELS = (
    "NUMERIC SORT", "STRING SORT", "BITFIELD", "FP EMULATION", "FOURIER",
    "ASSIGNMENT", "IDEA", "HUFFMAN", "NEURAL NET", "LU DECOMPOSITION",
)  # fmt: skip


def iterations_per_second(text: str, kernel: str) -> float:
    """The rate of one kernel, which the table calls by capital letters.

    Raises RefusedOutput unless all ten rows are there, each once and in their order.
    """
    found = _ROW.findall(text)
    if tuple(name for name, _ in found) != _KERNELS or not text.endswith("\n"):
        raise RefusedOutput("NBench's table does not have its ten rows", text)
    rate = float(dict(found)[kernel])
    if rate <= 0:
        raise RefusedOutput("NBench measured nothing: zero", text)
    return rate
