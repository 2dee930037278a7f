"""A run: one execution of the suite on one board."""

from collections.abc import Mapping
from typing import Self

import msgspec

from evmperf.model import limits
from evmperf.model.ended import Ending
from evmperf.model.facts import Facts
from evmperf.model.results import SCHEMA

FOREIGN = "foreign"
"""Kind of the runs that others measured, and the beginning of the names of their boards."""
NIGHT = "night"
"""The fact that says of which `evmperf night` a run is."""


class Run(msgspec.Struct):
    """One execution of the suite on one board. Times are nanoseconds since the epoch; `outcome` is a
    sentence, "" while the run goes on, `ending` the same for programs, None in old runs. `addresses` are
    URLs: `job` and `pipeline` of CI, and `results`, below which the run's folder is served.
    """

    id: str
    board: str
    profile: str
    kind: str = "desk"
    lab: str = ""
    place: str = ""
    started_ns: limits.Count = 0
    ended_ns: limits.Count = 0
    release: str = ""
    os: str = ""
    exit_status: limits.Status | None = None
    outcome: str = ""
    ending: Ending | None = None
    facts: Facts = msgspec.field(default_factory=Facts)
    addresses: dict[str, str] = {}
    schema: int = SCHEMA

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """The run of a JSON object; raises msgspec.ValidationError for one of another form."""
        facts = msgspec.convert(data.get("facts", {}), dict[str, object])
        run = msgspec.convert({**data, "facts": {}}, cls)
        run.facts = Facts.from_dict(facts)
        return run

    def to_dict(self) -> dict[str, object]:
        """The JSON object."""
        return msgspec.structs.asdict(self) | {"facts": self.facts.to_dict()}

    @property
    def report(self) -> str:
        """The address of the run's report, "" if it is not served."""
        base = self.addresses.get("results", "")
        return f"{base.rstrip('/')}/{self.id}/report.html" if base else ""
