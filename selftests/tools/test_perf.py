"""perf's stacks, in the form that a virtual EVM left; `selftests/measuring/test_ospi.py` has perf itself."""

import pytest

from evmperf.benchmarks.tools import perf
from evmperf.model.errors import RefusedOutput

STACKS = """\
16	swapper;__secondary_switched;secondary_start_kernel;cpu_startup_entry;do_idle;default_idle_call
3	swapper;start_kernel;do_idle;default_idle_call;el1h_64_irq;handle_softirqs
6	dd;[dd];__libc_start_main;el0_svc;__arm64_sys_read;vfs_read;__pi_clear_page
2	perf;[perf];__poll;el0_svc;eventfd_poll
3	sh;[dash]
"""


def test_a_profile_has_symbols_by_their_share_of_the_busy_time():
    profile = perf.parse(STACKS, "# started\n\n<not supported>,,cycles,0,100.00,,\n")
    assert profile.symbols == {"handle_softirqs": 3, "__pi_clear_page": 6, "[dash]": 3}
    assert (profile.idle, profile.share("__pi_clear_page"), profile.per_cycle) == (16, 0.5, 0.0)
    counted = perf.parse(STACKS, "4000,,cycles,1,100.00,,\n6000,,instructions,1,100.00,1.50,insn per cycle\n")
    assert counted.per_cycle == 1.5
    assert profile.uncertainty == pytest.approx(1.96 * (0.5 * 0.5 / 12) ** 0.5)


def test_flame_graph_tools_get_the_count_last():
    assert perf.flames(STACKS).splitlines()[4] == "sh;[dash] 3"


@pytest.mark.parametrize("line", ["no stack", "x\tdd;read", "\tdd", "12\t", f"{10**12}\tdd"])
def test_a_line_of_another_form_is_refused(line):
    with pytest.raises(RefusedOutput):
        perf.parse(f"{STACKS}{line}\n")
