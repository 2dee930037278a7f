"""The command `evmperf lava`: jobs made from the catalogue, submitted, followed, and read back."""

import argparse

from evmperf.commands.app import lavajobs
from evmperf.commands.app.requests import Cancel, Follow, Import, JobState, Judged, Submit
from evmperf.commands.cli.arguments import command, requested
from evmperf.commands.cli.terminal import note
from evmperf.commands.lava import devices
from evmperf.commands.lava import lab as labs
from evmperf.commands.lava.server import job_number
from evmperf.measure import boardfile
from evmperf.model.errors import UsageError
from evmperf.model.replies import Remark, Reply


@command("lava render")
def _render(options: argparse.Namespace) -> None:
    print(lavajobs.definition(requested(Submit, options), _tell), end="")


@command("lava submit")
def _submit(options: argparse.Namespace) -> int:
    if options.read and not options.wait:
        raise UsageError("--import needs --wait: add --wait")
    status = 0
    for number, page in lavajobs.submit(requested(Submit, options), _tell).jobs:
        print(f"job {number}: {page}", flush=True)
        if options.wait:
            options.job, options.board = str(number), ""
            judged = lavajobs.follow(_follow(options), _tell)
            if options.read:
                status = max(status, _import(options))
            status = max(status, _judge(judged))
    return status


def _follow(options: argparse.Namespace) -> Follow:
    return requested(Follow, options, job=job_number(options.job), timeout_s=options.timeout)


@command("lava wait")
def _wait(options: argparse.Namespace) -> int:
    return _judge(lavajobs.follow(_follow(options), _tell))


@command("lava verdict")
def _verdict(options: argparse.Namespace) -> int:
    return _judge(lavajobs.ended(_follow(options), _tell))


@command("lava cancel")
def _cancel(options: argparse.Namespace) -> None:
    lavajobs.cancel(Cancel(job=job_number(options.job), identity=options.identity), _tell)


@command("lava import")
def _import(options: argparse.Namespace) -> int:
    facts = dict(word.split("=", 1) for word in getattr(options, "fact", ()) if "=" in word)
    done = lavajobs.read(requested(Import, options, facts=facts), _tell)
    if not done.folder:
        print(f"{done.name}: nothing to read: a lab-host job keeps and pushes its results itself")
        return 0
    word = "read" if done.new else "already read before, left unchanged"
    print(f"{done.name}: {word}: {done.folder}\n{done.outcome}")
    return done.status


def _judge(judged: Judged) -> int:
    print("\n".join(judged.lines))
    return judged.status


def _tell(news: Reply) -> None:
    if isinstance(news, JobState):
        where = f" on {news.device}" if news.device else ""
        print(f"job {news.job}: {news.state}{where}", flush=True)
    elif isinstance(news, Remark):
        note(news.sentence)


@command("lava device")
def _device(options: argparse.Namespace) -> None:
    for path in devices.write(boardfile.named(options.board), options.into):
        print(path)


@command("lava lab")
def _lab(options: argparse.Namespace) -> int:
    if options.action == "up":
        lab = labs.up(note, options.board)
        print(f"LAVA is running at {lab.url}; stop it with `evmperf lava lab down`")
        return 0
    if options.action == "down":
        print("LAVA stopped" if labs.down() else "LAVA was not running")
        return 0
    found = labs.running()
    print(
        f"LAVA is running at {found.url}" if found else "LAVA is not running; start it with `make lava-lab`"
    )
    return 0 if found else 1
