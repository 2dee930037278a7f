"""`evmperf why --prove`: which of the differences to a good run costs the figure, as the board answers."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from evmperf.boards import board as boards
from evmperf.explain import compared, facts
from evmperf.explain.answers import Answer
from evmperf.explain.facts import TABLE
from evmperf.explain.proving import Proving
from evmperf.measure.runs.spool import Spool
from evmperf.measure.state.finding import Finding
from evmperf.model.errors import LabError, UsageError
from evmperf.model.run import Run
from evmperf.model.state import State
from selftests.support import programs, spools
from selftests.support.placelab import until

CASES = yaml.safe_load(Path(__file__).with_name("commands.yaml").read_text())
NOISE = (1.0, 1.02, 0.99, 1.01)


def setting(name):
    return Finding(
        name, f"set otherwise: {name}", otherwise=True, back=(f"run:{name}=bad", f"run:{name}=good")
    )


SHARE = Finding(
    "sched_rt_runtime_us",
    "set otherwise: sched_rt_runtime_us",
    otherwise=True,
    fact="sched_rt_runtime_us",
    back=tuple(f"run:echo '{us}' >/proc/sys/kernel/sched_rt_runtime_us" for us in (1000, 950000)),
)
FIXED = Finding("net.duplex", "set otherwise: net.duplex", otherwise=True)
FIVE = tuple(map(setting, "abcde"))


def proving(tmp_path, board, *, causes=FIVE, budget_s=600.0, drivers=None):
    """A proof on a board whose figure is `board` of its good settings; 155 was measured instead of 912."""

    def measure(experiment, entry, leave_out):
        words = experiment.sides[entry.side]
        if refused := [word for word in words if word.startswith("run:refused")]:
            raise LabError(f"{refused[0]}: ended with exit status 1 on the board")
        good = {word[4:].removesuffix("=good") for word in words if word.endswith("=good")}
        entry.run, entry.left_out = "r", ""
        entry.value = board(good) * NOISE[entry.block % len(NOISE)]

    answer = Answer(
        benchmark="emmc_raw_fio_1g",
        case="4k",
        metric="read_throughput",
        unit="MB/s",
        ours=155.0,
        theirs=912.0,
        release="good",
        looked=True,
        causes=(*causes, FIXED),
    )
    result = spools.a_case(benchmark="emmc_raw_fio_1g", case="4k", driver="emmc")
    there = boards.load(boards.find("virtual"))
    there = replace(there, drivers=drivers) if drivers else there
    return Proving(tmp_path, there, "virtual.yaml", result, answer, budget_s, measure, lambda text: None)


@pytest.mark.parametrize(
    ("board", "found", "sentence"),
    [
        (lambda good: 912 if "a" in good else 155, ("a",), "a as in good: 9.* of 15.*is it"),
        (lambda good: 912 if "d" in good else 155, ("d",), "d as in good: .* 4 of 4 .* is it"),
        (lambda good: 912 if {"b", "e"} <= good else 155, ("a", "b", "c", "d", "e"), "d, e as in good"),
        (lambda good: 161 if good else 155, (), "none of the 5 .* together: 15.* to 16"),
        (lambda good: 905, (), "the loss is gone"),
    ],
)
def test_the_board_answers_which_difference_costs_the_figure(tmp_path, board, found, sentence):
    proved = proving(tmp_path, board).prove()
    assert (proved.found, proved.unset) == (found, ("net.duplex",))
    assert re.search(sentence, proved.sentence), proved.sentence


def test_a_setting_that_the_board_refuses_is_left_as_it_is(tmp_path):
    proved = proving(
        tmp_path, lambda good: 912 if "b" in good else 155, causes=(setting("refused"), *FIVE)
    ).prove()
    assert proved.found == ("b",)
    assert proved.unset[1].startswith("refused (run:refused=")


def test_what_the_time_does_not_decide_is_undecided(tmp_path):
    proved = proving(tmp_path, lambda good: 500 if "a" in good else 155, budget_s=0.0).prove()
    assert proved.found == ()
    assert "155.00 to 500.00 MB/s in 1 block" in proved.sentence


def test_where_nothing_would_put_it_back_nothing_is_set(tmp_path):
    with pytest.raises(UsageError, match="no power switch"):
        proving(tmp_path, lambda good: 1, drivers={"ManualPowerDriver": {}})
    with pytest.raises(UsageError, match="no difference was read"):
        proving(tmp_path, lambda good: 1, causes=())


def test_a_command_is_for_the_port_and_the_disk_of_the_board_file(tmp_path):
    there = proving(tmp_path, lambda good: 1)
    word = there._on("run:echo 'bfq' >$q/queue/scheduler")
    assert word.startswith("run:q=$(readlink -f /sys/class/block/$(basename $(readlink -f /dev/")
    assert word.endswith("q=${q%/*}; echo 'bfq' >$q/queue/scheduler")
    wired = replace(there, result=spools.a_case(benchmark="eth_icssg_tcp_bidir", driver="icssg"))
    assert wired._on("run:ip link set INTERFACE mtu 1500") == "run:ip link set eth1 mtu 1500"


@pytest.mark.parametrize(("name", "value"), CASES["evil"])
def test_a_fact_of_anothers_run_is_never_a_command_of_its_own(name, value):
    found = [entry.command(name, value) for entry in TABLE.settings if re.fullmatch(entry.fact, name)]
    assert not any("reboot" in text or "off" in text.split()[-1:] or "down" in text for text in found), found


def test_a_process_is_started_as_often_as_it_was_and_stands_still_when_stopped():
    text = """perl -e 'sleep 713 # it'"'"'s ours'"""
    ours = State(changed={"command.71": text, "command.72": text, "command.73": "sh -c 'cut"})
    found = [Finding("beside", "other load", fact=f"command.{number}") for number in (71, 72, 73)]
    stopped = list(compared.stopped(found, ours, State()))
    assert [one.back for one in compared.stopped(found, ours, ours)] == [()] * 3
    assert stopped[0].back == stopped[1].back
    assert stopped[2].back == ()
    start, stop = (word.removeprefix("run:") for word in stopped[0].back)
    command = "\0".join(shlex.split(text)) + "\0"
    try:
        for _ in range(2):
            subprocess.run(["sh", "-c", start], check=True)
            until(lambda: len(_running(command)) >= 2)
        assert len(_running(command)) == 2
        subprocess.run(["sh", "-c", stop], check=True)
        until(lambda: set(_running(command).values()) == {"T"})
    finally:
        for number in _running(command):
            os.killpg(number, signal.SIGKILL)


def _running(command):
    """The states of the processes with a command line."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "cmdline").read_text() == command:
                found[int(folder.name)] = (folder / "stat").read_text().rpartition(") ")[2][0]
    return found


@pytest.mark.parametrize(("name", "value", "text"), CASES["commands"])
def test_a_command_gives_a_setting_its_value_or_takes_it_away(name, value, text):
    assert text in facts.command(name, value)
    assert bool(text) == bool(facts.command(name, value))


def test_options_are_those_of_the_cases_mount_alone(tmp_path):
    """Steps remount /dev/shm and mount debugfs, too, which refuse a disk's options."""
    (tmp_path / "mount").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "mount").chmod(0o755)
    asked = facts.command("mounted", "ext4 rw,data=journal")
    mounts = '. $F/env; mount -o async /dev/x "$F/mnt"; mount -o remount /dev/shm'
    environment = {**os.environ, "F": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = programs.run("sh", "-c", f"{asked}; {mounts}", environment=environment, check=True)
    assert done.stdout.splitlines() == [
        f"-o data=journal -o async /dev/x {tmp_path}/mnt",
        "-o remount /dev/shm",
    ]


@pytest.mark.parametrize(
    ("cause", "why"),
    [
        (SHARE, "sched_rt_runtime_us (it was 1000 in r0b)"),
        (
            replace(setting("process sleep 9"), rule="beside", fact="process sleep 9"),
            "process sleep 9 (it did not work in r0a)",
        ),
    ],
)
def test_a_setting_that_a_round_did_not_have_proves_nothing(tmp_path, cause, why):
    """The board of these rounds keeps its first share for real time, and starts nothing."""
    there = proving(tmp_path, lambda good: 912 if good else 155, causes=(cause,))
    measured, kept = there.measure, State(shown={"sched_rt_runtime_us": 1000})

    def measure(experiment, entry, leave_out):
        measured(experiment, entry, leave_out)
        entry.run = f"r{entry.block}{entry.side}"
        spool = Spool(tmp_path, Run(entry.run, "virtual", "full"))
        case = spools.a_case(benchmark="emmc_raw_fio_1g", case="4k", state=kept)
        spool.append(case)

    there.measure = measure
    proved = there.prove()
    assert proved.found == ()
    assert proved.unset == ("net.duplex", why)
