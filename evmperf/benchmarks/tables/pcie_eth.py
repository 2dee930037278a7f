"""An Ethernet card in the PCIe slot: iperf3 in both directions, with windows of six sizes."""

from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark, Place, Profile
from evmperf.benchmarks.families.network import EthernetLink, NetworkServer, options, prepare, put_back
from evmperf.benchmarks.step import Measure, Outputs, Plan, Step, Where, output
from evmperf.boards.board import Board
from evmperf.model.results import Case, Direction, Metric, Reading
from evmperf.model.units import Unit
from evmperf.tools import iperf3

_PREFIX = "eth_"
_FILE = "iperf3.json"
_WINDOWS_KB = (8, 16, 32, 64, 128, 256)


def _steps(board: Board, case: Case, plan: Plan) -> Sequence[Step]:
    link, server = EthernetLink.of(board, "pcie"), NetworkServer("iperf3", Where.TESTER, plan.port)
    seconds, window = int(case.params["seconds"]), str(case.params["tcp_window_kb"])
    # LTP-DDT, which the guides' figures come from, limits segments for the smallest window only.
    segment = "-M 1500 " if window == "8" else ""
    test = f"--bidir {segment}-w {window}K"

    def parse(outputs: Outputs) -> list[Reading]:
        return [Reading("bandwidth", iperf3.bidirectional(output(outputs, _FILE), seconds))]

    return [
        prepare(link),
        server.start(),
        Measure(
            "measure",
            iperf3.command(link.tester, server.port, seconds, test, _FILE),
            seconds * 2 + 60,
            seconds + 1,
            parse=parse,
        ),
        server.stop(),
        put_back(),
    ]


def _profile(seconds: int) -> Profile:
    return Profile(
        tuple(Case(str(window), {"tcp_window_kb": str(window), "seconds": seconds}) for window in _WINDOWS_KB)
    )


BENCHMARK = Benchmark(
    name="pcie_eth",
    driver="pcie",
    title="PCI Ethernet",
    section=("PCIe Driver", "PCIe-ETH"),
    metrics=(
        Metric("bandwidth", Unit.MEGABIT_PER_SECOND, Direction.HIGHER, "Bandwidth", low=0.001, high=400_000),
    ),
    profiles={"full": _profile(60), "quick": _profile(1)},
    place=Place.SHELL,
    steps=_steps,
    tools=("iperf3",),
    tester_tools=("iperf3",),
    options=options("pcie", _PREFIX),
    conditions=lambda board: EthernetLink.of(board, "pcie").conditions,
)
