"""An image put on a board."""

import contextlib
from collections.abc import Callable

from evmperf.boards.board import Board
from evmperf.lab.bench import LabgridBench
from evmperf.lab.doctor import target as targets
from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.wanted import wanted
from evmperf.lab.provision.installation import Installation, Installed
from evmperf.measure.signals import listening
from evmperf.model.errors import EvmperfError


def provision(
    board: Board,
    image: str,
    coordinator: str,
    *,
    force: bool,
    keep_on: bool,
    tell: Callable[[str], None],
    progress: Callable[[str, int, int], None],
) -> Installed:
    """Put an image on a board unless it runs it (with `force` even then), and verify that it runs; the board
    is off afterwards unless it is to stay on. Raises EvmperfError, with the board off again.
    """
    with contextlib.ExitStack() as stack:
        claim = Claim.take(wanted(board.file, coordinator), "provision", tell=tell)
        stack.callback(claim.release)
        target = stack.enter_context(targets.opened(board, claim, tell, keep_lab=keep_on))
        bench = LabgridBench(target, board, check=claim.check)
        stack.callback(bench.close)
        claim.on_lost = bench.lose
        if not keep_on:
            stack.push(lambda kind, *_: _off(bench, claim, quietly=kind is not None))
        work = Installation(target, board, bench, tell=tell, progress=progress)
        tell(f"{board.name}: overwrites {work.describe()}")
        return work.install(image, force=force)


def _off(bench: LabgridBench, claim: Claim, *, quietly: bool) -> None:
    """Switch a board off that is still ours, whatever signal comes."""
    with contextlib.suppress(*[EvmperfError] if quietly else []), listening(lambda *_: None):
        if not claim.lost:
            bench.off()
