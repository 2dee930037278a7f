"""What processes of evmperf ask each other, and what they reply: one JSON object a line.

A request goes to the standard input of `python -m evmperf.commands.app`, its replies come from the standard
output: news while it works, then either the result of that request, or `Failed`. What is printed
for people goes to the standard error.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from evmperf.measure.runs.differences import Difference
from evmperf.measure.state.answers import Answer
from evmperf.model.change import Comparison
from evmperf.model.exits import ExitStatus
from evmperf.model.replies import Failed, Remark, Reply
from evmperf.model.verdict import Judgement


class Request(msgspec.Struct, frozen=True, kw_only=True, tag_field="request", tag=True):
    """What one process asks of another."""


class Submit(Request, frozen=True):
    """Submit a LAVA job for a board: a board file, or the file of a complete job."""

    board: str
    keyword: str = ""
    kind: str = "native"
    profile: str = ""
    release: str = ""
    images: tuple[str, ...] = ()
    device_type: str = ""
    tags: tuple[str, ...] = ()
    priority: str = "medium"
    identity: str = ""


class Submitted(Reply, frozen=True):
    """The jobs that LAVA made of it: number and page."""

    jobs: tuple[tuple[int, str], ...]


class Follow(Request, frozen=True):
    """Wait for the end of a LAVA job, at most `timeout_s` seconds, and judge it."""

    job: int
    board: str = ""
    identity: str = ""
    timeout_s: float = 24 * 3600.0


class JobState(Reply, frozen=True):
    """A LAVA job's state has changed; `device` is "" while it has none."""

    job: int
    state: str
    device: str


class Judged(Reply, frozen=True):
    """The outcome of a finished job or search: its status, and the lines that say why, the last one whole."""

    status: ExitStatus
    lines: tuple[str, ...]


class Import(Request, frozen=True):
    """Read a finished LAVA job, or the file of its log, into the spool below `results`.

    `job` is a number, a page or a file; `facts` are added to the run's.
    """

    job: str
    results: str
    board: str = ""
    identity: str = ""
    run_kind: str = "lava"
    facts: dict[str, str] = {}


class Imported(Reply, frozen=True):
    """The place of a read job's run ("" for one that keeps its results), its outcome, whether it is new."""

    name: str
    folder: str = ""
    status: ExitStatus = ExitStatus.OK
    outcome: str = ""
    new: bool = True


class Cancel(Request, frozen=True):
    """End a LAVA job that runs or waits."""

    job: int
    identity: str = ""


class Why(Request, frozen=True):
    """Explain the figures of the run in `folder`, or those of the cases whose name holds `case`.

    They are held against the run in the folder `against`, against the published ones where that is "".
    """

    folder: str
    case: str = ""
    against: str = ""


class Explained(Reply, frozen=True):
    """What is known of the figures that were asked for; `against` in words, "" if there was nothing."""

    run: str
    board: str
    answers: tuple[Answer, ...]
    against: str = ""
    busy: str = ""
    """What else the board or the lab's host did meanwhile, which says more than any cause."""


class FindBoard(Request, frozen=True):
    """Find the board on this desk: at an `address` (user@host:port), on one of `ports`, by both (the
    console, and SSH for files), or on whatever USB serial port it talks; its file goes into `folder`.

    `user` logs in on a console; `power` is how its power is worked, as options.boot.power says it;
    `tester` is what stands at the other end of its network cable, `local` for this machine. With
    `make_scratch` the scratch partition is measured on if whoever asks agrees; without one the command that
    makes it is said. With `install` the board's package manager brings missing programs, if they agree.
    """

    folder: str
    address: str = ""
    ports: tuple[str, ...] = ()
    key: str = ""
    user: str = "root"
    password: str | None = None
    power: str = "none"
    tester: str = ""
    boot: bool = False
    make_scratch: bool = False
    install: bool = False


class LeftOut(msgspec.Struct, frozen=True):
    """Drivers and benchmarks that are not measured for one reason."""

    names: tuple[str, ...]
    why: str


class FoundBoard(Reply, frozen=True):
    """What the board says that it is, its file (and which one it is like, "" for a board that was
    never seen), how many cases of which benchmarks can be measured now, and what that changes.

    `state` is what it does at the moment, each in words and whether that spoils figures; `steps` are the
    worthiest measurements that are left out, each with the step that brings it.
    """

    where: str
    model: str
    file: str
    os: str = ""
    like: str = ""
    can: dict[str, int] = msgspec.field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    changes: tuple[str, ...] = ()
    state: tuple[tuple[str, bool], ...] = ()
    steps: tuple[tuple[str, str], ...] = ()


class Check(Request, frozen=True):
    """Judge runs (folders, or names below `results`) as `evmperf check` does.

    `source` names where earlier runs are ("" for `results` and the lab's store); `level` is the
    false discovery rate (None: the usual). With `confirm_s` what is worse is checked again within
    so many seconds on `board` ("" for the run's own), which is waited for `wait_s` seconds. Without
    `keep` nothing is written.
    """

    runs: tuple[str, ...]
    against: str
    results: str
    source: str = ""
    level: float | None = None
    confirm_s: float = 0.0
    board: str = ""
    wait_s: float = 0.0
    keep: bool = True


class Checked(Reply, frozen=True):
    """The gravest status of the runs, and why some were not judged, in sentences."""

    status: ExitStatus
    failed: tuple[str, ...] = ()


class WriteGuide(Request, frozen=True):
    """Write the guide of a release (or `newest`), and of these boards if any, from the runs of a source into
    a file. `like` is a guide whose layout it gets; `extras` are counts, delta and outliers.
    """

    release: str
    source: str
    output: str = ""
    os: str = ""
    board: tuple[str, ...] = ()
    like: str = ""
    extras: tuple[str, ...] = ()


class Push(Request, frozen=True):
    """Send what InfluxDB does not have yet of the runs below `results`."""

    results: str


class WriteSite(Request, frozen=True):
    """Write the site of all runs into a folder; the runs as for Check, `reports` as `evmperf site`."""

    output: str
    results: str
    source: str = ""
    reports: str = ""


class Keep(Request, frozen=True):
    """Keep runs (names below `results`) in the lab's store."""

    runs: tuple[str, ...]
    results: str


class Compare(Request, frozen=True):
    """Judge the runs of side B by those of side A, named as for Check."""

    a: tuple[str, ...]
    b: tuple[str, ...]
    results: str
    level: float | None = None


class Reproduce(Request, frozen=True):
    """Measure the case of a case file on a board in the same way, into `results`, and compare."""

    file: str
    board: str
    results: str = "results"


class Reproduced(Reply, frozen=True):
    """The run's folder, its judgement by the case file, and the status of both."""

    folder: str
    judgement: Judgement
    status: int


class Provision(Request, frozen=True):
    """Put an image on a board unless it runs it (with `force` even then), and verify that it runs; the
    board is off afterwards unless it is to stay on.
    """

    board: str
    image: str
    coordinator: str = ""
    force: bool = False
    keep_on: bool = False


class Provisioned(Reply, frozen=True):
    """What runs on the board: the image, which may have been there, and what booted of it."""

    image: str
    left_alone: bool
    kernel: str
    uboot: str


class ReadImage(Request, frozen=True):
    """Read what an image says of itself, whether it fits a `board` if any, and `write` it to a medium of
    this host if any.
    """

    image: str
    board: str = ""
    write: str = ""


class ImageRead(Reply, frozen=True):
    """An image in data, and in words with their values; `fits` is the board that it was checked for."""

    name: str
    size: int
    sha256: str
    facts: dict[str, Any]
    lines: tuple[tuple[str, str], ...]
    fits: str = ""


class Portion(Reply, frozen=True):
    """How much of an image is read or written, in bytes of the whole."""

    what: str
    done: int
    whole: int


class MeasureSides(Request, frozen=True):
    """Measure two variations of a board in turn (`evmperf ab`), or `resume` what a folder has; at most
    `rounds` blocks and `budget` seconds (0: what was said before, else 20 blocks).
    """

    board: str = ""
    a: tuple[str, ...] = ()
    b: tuple[str, ...] = ()
    metric: tuple[str, ...] = ()
    within: float = 0.02
    rounds: int | None = None
    budget: float = 0.0
    select: str = ""
    profile: str = ""
    boots: int = 0
    wait: float = 0.0
    results: str = "results"
    resume: str = ""


class MeasuredSides(Reply, frozen=True):
    """The state of an A/B in its folder, what differs between its sides, and its status."""

    folder: str
    comparison: Comparison
    differences: tuple[Difference, ...]
    status: ExitStatus


class Bisect(Request, frozen=True):
    """Find the change that made a metric worse (`evmperf bisect`), or `resume` a search."""

    board: str = ""
    of: str = ""
    what: tuple[str, ...] = ()
    metric: str = ""
    build: str = ""
    repository: str = "."
    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    rounds: int = 60
    select: str = ""
    profile: str = ""
    boots: int = 0
    wait: float = 0.0
    results: str = "results"
    resume: str = ""


class Produced(Reply, frozen=True):
    """What was written or sent, in one sentence."""

    sentence: str


class Done(Reply, frozen=True):
    """The end of a request that has no other result."""


News = Remark | JobState
Results = Submitted | Judged | Imported | Explained | FoundBoard | Checked | Produced | Done
Replies = News | Failed | Results
Hear = Callable[[Reply], None]
"""Gets the news of a request while it is worked on."""
