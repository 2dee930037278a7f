"""Getting at the outputs of a step."""

from __future__ import annotations

from evmperf.benchmark import Outputs
from evmperf.errors import RefusedOutput


def output(outputs: Outputs, name: str) -> str:
    """One output file; raises RefusedOutput if the step left none of that name."""
    if name not in outputs:
        raise RefusedOutput(f"the step left no {name}", "\n".join(outputs.values()))
    return outputs[name]
