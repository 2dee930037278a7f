"""What other packages add to evmperf, by entry points.

`evmperf.commands`: a module that declares commands (its docstring is the line in the list). `evmperf.labs`: a
function that starts the lab of a board file, for boards that are no hardware. `evmperf.lava`: a function that
returns the address and the token of a LAVA server on this machine.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points


def plugins(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name, not loaded yet."""
    return {point.name: point for point in entry_points(group=f"evmperf.{group}")}
