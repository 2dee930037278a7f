"""How often an A/B is wrong and how soon it is right, on simulated noise.

Every trial looks after each block, as `evmperf ab` does, and stops when the metric is decided, with
several metrics when a wrong one is called changed.
"""

import math
from dataclasses import dataclass

import numpy as np

from evmperf.judge import paired
from evmperf.model.verdict import Outcome
from selftests.instruments import command, noise

ALARMS = (Outcome.WORSE, Outcome.BETTER)
MANY = 40
"""Metrics that an A/B of one driver has."""


@dataclass(frozen=True)
class Found:
    """What many trials of one kind said, as shares of the trials; `blocks` is the median number of
    blocks to a decision, infinite where most had none.
    """

    alarms: float
    same: float
    missed: float
    """Trials in which the interval did not hold the true change when measuring stopped."""
    blocks: float
    late: float
    """Blocks within which nine in ten trials were decided."""


def looks(random, kind, rounds, metrics, change):
    """What is known after each block."""
    quantities = dict.fromkeys(noise.keys(metrics), noise.METRIC)
    blocks = noise.blocks(random, kind, rounds, metrics=metrics, change=change)
    for count in range(paired.anytime.FEWEST, rounds + 1):
        yield paired.compare(blocks[:count], quantities)


def simulate(kind, trials, rounds, *, metrics=1, change=0.0, seed=1):
    """Trials of one kind of noise. With several metrics only the first has changed, if any."""
    random = np.random.default_rng(seed)
    alarms = same = missed = 0
    taken: list[float] = []
    first = noise.keys(1)[0]
    for _ in range(trials):
        needed, stopped, wrong = math.inf, None, False
        for count, found in enumerate(looks(random, kind, rounds, metrics, change), paired.anytime.FEWEST):
            wrong = any(entry.decision in ALARMS for entry in found if entry.key != first)
            if stopped is None or stopped.decision is Outcome.UNKNOWN:
                needed = count
                stopped = next(entry for entry in found if entry.key == first)
            if wrong or (metrics == 1 and stopped.decision is not Outcome.UNKNOWN):
                break
        assert stopped
        unknown = stopped.decision is Outcome.UNKNOWN
        alarms += wrong or stopped.decision in ALARMS
        same += stopped.decision is Outcome.SAME
        missed += not stopped.low <= change <= stopped.high
        taken.append(math.inf if unknown else needed)
    return Found(
        alarms / trials,
        same / trials,
        missed / trials,
        float(np.median(taken)),
        float(np.quantile(taken, 0.9, method="higher")),
    )


def main(words=None):
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=30, help="blocks after which a trial ends")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    print(f"{options.trials} trials of at most {options.rounds} blocks, a look after each\n")
    print("| noise | change | metrics | called changed | same | interval missed | blocks (90 %) |")
    print("|---|---|---|---|---|---|---|")
    for kind in noise.KINDS:
        for change, metrics in ((0.0, 1), (0.0, MANY), (0.02, 1), (0.05, 1), (0.15, 1)):
            trials = options.trials if metrics == 1 else max(1, options.trials // 10)
            found = simulate(kind, trials, options.rounds, metrics=metrics, change=change, seed=options.seed)
            print(
                f"| {kind} | {change:.0%} | {metrics} | {found.alarms:.1%} | {found.same:.1%} "
                f"| {found.missed:.1%} | {found.blocks:.0f} ({found.late:.0f}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
