"""What processes of evmperf ask each other, and what they reply: one JSON object a line.

A request goes to the standard input of `python -m evmperf.app`, its replies come from the standard
output: news while it works, then either the result of that request, or `Failed`. What is printed
for people goes to the standard error.
"""

from collections.abc import Callable

import msgspec

from evmperf.model.exits import ExitStatus
from evmperf.model.replies import Failed, Remark, Reply
from evmperf.state.answers import Answer


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
    """The outcome of a finished job: its status, and the lines that say why, the last one whole."""

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


class FindBoard(Request, frozen=True):
    """Find the board on this desk: at an `address` (user@host:port), on one of `ports`, by both (the
    console, and SSH for files), or on whatever USB serial port it talks; its file goes into `folder`.

    `user` logs in on a console; `power` is how its power is worked, as options.boot.power says it;
    `tester` is what stands at the other end of its network cable, `local` for this machine. With
    `make_scratch` a partition is made in free space, if whoever asks agrees.
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


class LeftOut(msgspec.Struct, frozen=True):
    """Drivers and benchmarks that are not measured for one reason."""

    names: tuple[str, ...]
    why: str


class FoundBoard(Reply, frozen=True):
    """What the board says that it is, its file (and which one it is like, "" for a board that was
    never seen), how many cases of which benchmarks can be measured now, and what that changes.
    """

    where: str
    model: str
    file: str
    os: str = ""
    like: str = ""
    can: dict[str, int] = msgspec.field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    changes: tuple[str, ...] = ()


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
    keep_unread: bool = False
    extras: tuple[str, ...] = ()
    plots: bool = False


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
