"""How often a bisection names the right change, on a bank of real samples.

The bank (`record_bank`) holds boots of the virtual EVM and eMMC cases, in the
order in which they were measured on a machine whose load changed all the time. A try reads
it from a random place on, so that neighbouring rounds have the load that they had. In a series of
32 versions, from a hidden one on boot time is 15 % longer, or eMMC writes are 20 % slower; in a
null series nothing changes.
"""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evmperf.judge import search as searching
from evmperf.judge.experiment import Experiment, Round
from evmperf.judge.search import BAD, CANDIDATE, Bisection, Bisector
from selftests.instruments import command

BANK = Path(__file__).parents[1] / "data/bank/virtual-evm.jsonl"
VERSIONS = 32
MOST_BLOCKS = 1000
"""Far more than a night has: what is asked here is what it takes."""
NULL_BLOCKS = 300
"""Where nothing changes, all of them are measured, for each version that chance made differ."""
SERIES = {
    "boot time grows by 15 %": ("boot_time", 1.15),
    "eMMC writes fall by 20 %": ("emmc_write_throughput", 0.80),
}


@dataclass(frozen=True)
class Try:
    """How one bisection went; `named` is "" when no culprit was named."""

    right: bool
    named: str
    steps: int
    rounds: int
    seconds: float


def read_bank(file: Path, what: str) -> list[dict[str, float]]:
    """The boots of which that was measured."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [line for line in lines if what in line]


class FromBank:
    """Measures by reading the bank from a place on; what is slow gets its factor."""

    def __init__(
        self, bank: Sequence[dict[str, float]], what: str, factor: float, first: int, at: int
    ) -> None:
        self.bank, self.what, self.factor, self.first, self.at = bank, what, factor, first, at

    def measure(self, search: Experiment, entry: Round, _: Sequence[str]) -> None:
        assert isinstance(search, Bisection)
        line = self.bank[self.at % len(self.bank)]
        after = self.bank[(self.at + 1) % len(self.bank)]
        self.at += 1
        slow = entry.side == BAD or (
            entry.side == CANDIDATE and search.versions.index(entry.version) >= self.first
        )
        entry.left_out = ""
        entry.value = line[self.what] * (self.factor if slow else 1.0)
        entry.seconds = max(0.0, min(60.0, after["time_s"] - line["time_s"]))


def one_try(bank: Sequence[dict[str, float]], what: str, factor: float, source: random.Random) -> Try:
    """One bisection of a series with a hidden change (none where `factor` is 1)."""
    first = source.randrange(1, VERSIONS)
    search = Bisection(
        id="simulated",
        boards=["virtual"],
        metrics=[what],
        sides={"good": [], "bad": [], "candidate": []},
        seed=str(source.random()),
        versions=[f"v{number}" for number in range(VERSIONS)],
        blocks=MOST_BLOCKS if factor != 1 else NULL_BLOCKS,
    )
    measures = FromBank(bank, what, factor, first, source.randrange(len(bank)))
    found = searching.bisect(Bisector(search, measures.measure, lambda _: None))
    named = found.version if found and not found.why else ""
    return Try(named == f"v{first}", named, len(search.steps), len(search.rounds), search.spent_s)


def tries(bank: Sequence[dict[str, float]], what: str, factor: float, count: int, seed: int) -> list[Try]:
    source = random.Random(seed)
    return [one_try(bank, what, factor, source) for _ in range(count)]


def main(words: Sequence[str] | None = None) -> None:
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("--bank", type=Path, default=BANK)
    parser.add_argument("--tries", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    print(f"{options.tries} tries each, {VERSIONS} versions\n")
    print("| series | right | named a wrong one | steps (most) | rounds (90 %) | hours (90 %) |")
    print("|---|---|---|---|---|---|")
    for title, (what, factor) in SERIES.items():
        bank = read_bank(options.bank, what)
        for name, times in (
            (f"{title} ({len(bank)} in the bank)", factor),
            (f"nothing changes (at most {NULL_BLOCKS} blocks)", 1.0),
        ):
            found = tries(bank, what, times, options.tries, options.seed)
            rounds = sorted(entry.rounds for entry in found)
            hours = sorted(entry.seconds / 3600 for entry in found)
            late = min(len(found) - 1, round(0.9 * len(found)))
            print(
                f"| {name} | {sum(e.right and times != 1 for e in found)} of {len(found)} "
                f"| {sum(bool(e.named) and (times == 1 or not e.right) for e in found)} "
                f"| {statistics.median(e.steps for e in found):.0f} "
                f"({max(e.steps for e in found)}) "
                f"| {statistics.median(rounds):.0f} ({rounds[late]}) "
                f"| {statistics.median(hours):.1f} ({hours[late]:.1f}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
