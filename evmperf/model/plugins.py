"""What other packages add to evmperf, by entry points.

`evmperf.commands`: a module that declares commands (its docstring is the line in the list). `evmperf.labs`: a
function that starts the lab of a board file, for boards that are no hardware. `evmperf.guides`: what the
package guide-reader answers: `figures` of a guide's board, a guide's `layout`, the `sheets` and what they say
a mode costs (`price`).
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from evmperf.model.errors import UsageError


def plugins(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name, not loaded yet."""
    return {point.name: point for point in entry_points(group=f"evmperf.{group}")}


def of_guides(name: str) -> Any:
    """What guide-reader has of that name, loaded; None where it is not installed."""
    point = plugins("guides").get(name)
    return point and point.load()


def guide_reader(name: str, what: str) -> Any:
    """The same for somebody who needs it; raises UsageError with how to install it."""
    if loaded := of_guides(name):
        return loaded
    raise not_installed(what, "guide-reader")


def not_installed(what: str, package: str) -> UsageError:
    """What is said where `what` needs a package beside evmperf, which the wheel does not bring."""
    return UsageError(
        f"{what}: this needs the package {package}: `make setup` in a clone of evmperf installs it"
    )
