"""The processor under a benchmark: its load, which CPU, and cpufreq's governor, which is put back.

TI's test definitions pin single-threaded programs to CPU 0 and set the performance governor.
"""

from evmperf.benchmarks.step import CleanUp, Outputs, Prepare, output
from evmperf.model.places import STEP_FOLDER
from evmperf.model.results import Direction, Metric
from evmperf.model.units import Unit
from evmperf.tools import mpstat

CPU = 0
GOVERNOR = "performance"

PINNED = f"CPU {CPU}, {GOVERNOR} governor"
UNPINNED = f"all CPUs, {GOVERNOR} governor"
"""Variants of a result; boards without cpufreq have but one clock, which is its performance."""

_POLICIES = "/sys/devices/system/cpu/cpufreq/policy*"
_SAVED = f"{STEP_FOLDER}/governors"
_PUT_BACK = (
    f"if [ -e {_SAVED} ]; then while read -r file governor; do "
    f"echo $governor >$file || exit 3; done <{_SAVED} && rm {_SAVED}; fi"
)


def perf(unit: Unit, better: Direction, low: float, high: float) -> Metric:
    """The column `perf` of a system benchmark, which all of them have."""
    return Metric("perf", unit, better, "perf", low, high)


PREPARE = Prepare(
    "governor",
    f"{_PUT_BACK}; for p in {_POLICIES}; do f=$p/scaling_governor; [ -w $f ] || continue; "
    f'read -r governor <$f && echo "$f $governor" >>{_SAVED} && echo {GOVERNOR} >$f && '
    f'read -r set <$f && [ "$set" = {GOVERNOR} ] || {{ '
    f'echo "$f does not take {GOVERNOR}: enable that governor in the kernel"; exit 3; }}; done',
    30,
    0.2,
)
"""The step that sets every CPU's governor, after putting back an interrupted run's."""
PUT_BACK = CleanUp("governor-back", _PUT_BACK, 30, 0.2)
"""The step that gives every CPU its governor again, whatever happened."""


def pinned(command: str) -> str:
    """Shell text that runs a program and all it starts on CPU 0."""
    return f"taskset -c {CPU} {command}"


def load(outputs: Outputs) -> float:
    """CPU load in percent between the two snapshots of `mpstat.around`; raises RefusedOutput."""
    return mpstat.stat_load(output(outputs, mpstat.STAT_BEFORE), output(outputs, mpstat.STAT_AFTER))
