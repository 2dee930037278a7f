"""Images: put on boards, written to cards, and what they say of themselves."""

import contextlib
from collections.abc import Callable

import msgspec

from evmperf.boards import board as boards
from evmperf.commands.app.requests import Hear, ImageRead, Portion, Provision, Provisioned, ReadImage
from evmperf.lab.bench import LabgridBench
from evmperf.lab.doctor import target as targets
from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.wanted import wanted
from evmperf.lab.provision import identity, ways
from evmperf.lab.provision.cache import open_image
from evmperf.lab.provision.installation import Installation
from evmperf.lab.provision.ways import Host
from evmperf.measure import boardfile
from evmperf.measure.signals import listening
from evmperf.model.errors import EvmperfError
from evmperf.model.replies import Remark


def provision(request: Provision, hear: Hear) -> Provisioned:
    """Put an image on a board; raises EvmperfError, with the board off again."""
    board = boardfile.named(request.board)

    def tell(sentence: str) -> None:
        hear(Remark(sentence=sentence))

    with contextlib.ExitStack() as stack:
        claim = Claim.take(wanted(board.file, request.coordinator), "provision", tell=tell)
        stack.callback(claim.release)
        target = stack.enter_context(targets.opened(board, claim, tell, keep_lab=request.keep_on))
        bench = LabgridBench(target, board, check=claim.check)
        stack.callback(bench.close)
        claim.on_lost = bench.lose
        if not request.keep_on:
            stack.push(lambda kind, *_: _off(bench, claim, quietly=kind is not None))
        work = Installation(target, board, bench, tell=tell, progress=_portions(hear))
        tell(f"{board.name}: overwrites {work.describe()}")
        outcome = work.install(request.image, force=request.force)
    runs = outcome.runs
    return Provisioned(
        image=outcome.image.name,
        left_alone=outcome.left_alone,
        kernel=f"{runs.kernel} {runs.kernel_version}",
        uboot=runs.uboot,
    )


def _off(bench: LabgridBench, claim: Claim, *, quietly: bool) -> None:
    """Switch a board off that is still ours, whatever signal comes."""
    with contextlib.suppress(*[EvmperfError] if quietly else []), listening(lambda *_: None):
        if not claim.lost:
            bench.off()


def read(request: ReadImage, hear: Hear) -> ImageRead:
    """Read an image; raises UsageError for one that does not fit, LabError for a medium that fails."""
    board = boards.load(boards.find(request.board)) if request.board else None
    image = open_image(request.image, board, _portions(hear))
    if request.write:
        done = ways.write(Host(), request.write, image, _portions(hear))
        written = f"{done['written'] >> 10} KiB written, all of it read back"
        hear(Remark(sentence=f"{request.write}: {written}"))
    says, hashes = image.identity, image.hashes
    facts = image.facts() | {"content_bytes": hashes.size} | msgspec.structs.asdict(says)
    return ImageRead(
        name=image.name,
        size=hashes.size,
        sha256=hashes.file,
        facts=facts,
        lines=tuple(identity.lines(says)),
        fits=f"{board.name} ({board.file_name})" if board else "",
    )


def _portions(hear: Hear) -> Callable[[str, int, int], None]:
    return lambda what, done, whole: hear(Portion(what=what, done=done, whole=whole))
