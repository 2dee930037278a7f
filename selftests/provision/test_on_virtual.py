"""Releases put on a virtual EVM that boots from its card: written, booted, identified. How that goes wrong is
test_switch.py's and test_ways.py's.
"""

import pytest
import yaml

from evmperf.benchmarks import catalogue as benchmarks
from evmperf.lab.provision.installation import Installation
from evmperf.model.errors import LabError
from selftests.support import virtualbench

pytestmark = pytest.mark.virtual_evm

VARIANT = "virtual-sd"


@pytest.fixture
def lab(state):
    """A virtual lab and an installation there, which leaves the other disks of the board as they are."""
    with virtualbench.running(VARIANT, "card") as virtual:
        before = virtualbench.disks(virtual)
        file = virtualbench.board_file(virtual, VARIANT, virtual.folder)
        data = yaml.safe_load(file.read_text())
        data["targets"]["main"]["drivers"]["K3BootStrategy"].update(kernel_timeout=180, boot_timeout=240)
        file.write_text(yaml.safe_dump(data, sort_keys=False))
        with virtualbench.reached(file, benchmarks.board(file)) as bench:
            yield virtual, Installation(bench._target, bench.board, bench)
        assert virtualbench.disks(virtual) | {"sd": ""} == before | {"sd": ""}


def test_two_releases_in_turn_each_proved_and_no_card_is_moved_under_power(lab, releases):
    bench, work = lab
    bench.on()
    with pytest.raises(LabError, match=r"card .*board is on"):
        bench.card("host")
    assert "no partition" in bench.status().silent
    bench.off()
    bench.card("host")
    assert bench.status().card == "host"
    first, second, again = (work.install(str(releases[number])) for number in (0, 1, 1))
    assert [one.left_alone for one in (first, second, again)] == [False, False, True]
    assert [one.runs.release for one in (first, second)] == ["virtual-sd-2026.01", "virtual-sd-2026.02"]
    facts = second.facts
    assert facts["uboot"] == "U-Boot 2025.01 (Jan 02 2025 - 00:00:00 +0000)"
    assert facts["kernel_version"].startswith("#2 SMP")
    assert facts["root"] == "e5a1b202-02"
    assert facts["sha256"] == second.image.sha256
