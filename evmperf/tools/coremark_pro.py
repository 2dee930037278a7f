"""CoreMark-PRO: the two tables with which `make certify-all` ends, as its README shows them."""

from __future__ import annotations

import re

from evmperf.model.errors import RefusedOutput

_NUMBER = r"\d+(?:\.\d+)?"
_ROW = re.compile(rf"^(\S+) +({_NUMBER}) +({_NUMBER}) +{_NUMBER}$", re.MULTILINE)
_NAMES = (
    "cjpeg-rose7-preset", "core", "linear_alg-mid-100x100-sp", "loops-all-mid-10k-sp", "nnet_test",
    "parser-125k", "radix2-big-64k", "sha-test", "zip-test", "CoreMark-PRO",
)  # fmt: skip


def rate(text: str, name: str, column: str) -> float:
    """Workloads a second of one workload, or the score (`CoreMark-PRO`).

    `column` is `SingleCore` (one context) or `MultiCore` (as many as the run was told to use).
    Raises RefusedOutput unless both tables are whole.
    """
    found = _ROW.findall(text)
    if tuple(row[0] for row in found) != _NAMES or not text.endswith("\n"):
        raise RefusedOutput("CoreMark-PRO's tables do not have their ten rows", text)
    if text.count("MultiCore SingleCore") != 2:
        raise RefusedOutput("CoreMark-PRO's tables have other columns", text)
    multi, single = {row[0]: row[1:] for row in found}[name]
    value = float({"MultiCore": multi, "SingleCore": single}[column])
    if value <= 0:
        raise RefusedOutput("CoreMark-PRO measured nothing: zero", text)
    return value
