"""`evmperf why`: causes that were read, the largest first, and none on a healthy board."""

import json
import re
import shutil
from pathlib import Path

import fdt
import msgspec
import pytest
import yaml

from evmperf.commands.app import why
from evmperf.commands.cli.main import main
from evmperf.measure.runs.spool import Spool
from evmperf.model.errors import Kind, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.results import Failure, Sample, Status
from evmperf.model.run import Run
from evmperf.model.state import State
from selftests.support import bootruns, spools
from selftests.support.bootruns import LOADER
from selftests.support.spools import a_case

CASES = yaml.safe_load(Path(__file__).with_name("why.yaml").read_text())
HEALTHY = CASES["healthy"]
READ = 314.0
"""MB/s that TI published of this board's eMMC in release 09.01, and in the run's, 09.02."""


@pytest.fixture
def asked(tmp_path):
    """A function that asks why of a run on a J7200 with this state, and gives the answers."""

    def ask(state, read=150.0, case="emmc_ext4_fio_1g 1m", board="j7200-evm", **more):
        run = Run("r1", board, "full", os="Linux", release="09.02")
        spool = Spool(tmp_path / "results", run)
        given = {
            "benchmark": "emmc_ext4_fio_1g",
            "tools": {"fio": "3.36"},
            "samples": (
                Sample("read_throughput", read, "MB/s", 0, 1),
                Sample("read_cpu_load", 1.4, "%", 0, 1),
            ),
        }
        spool.append(a_case(state=state, **{**given, **more}))
        return why.explain(spool.folder, case).answers

    return ask


def causes(answers):
    """The rules of what was read, whether it did harm or not."""
    return [cause.rule for cause in (*answers[0].causes, *answers[0].read)]


def test_ours_and_theirs_stand_side_by_side(asked):
    (answer, _) = asked(State(shown=HEALTHY, bus="mmc HS400", shares={"read_throughput": 0.375}))
    history = dict(answer.history)
    assert (answer.metric, answer.ours) == ("read_throughput", 150.0)
    assert (answer.share, answer.bus) == (0.375, "mmc HS400")
    assert history["09.01.00"] == READ
    assert (answer.release, answer.theirs) == ("09.02.00", history["09.02.00"])  # the nearest
    assert len(history) > 1
    assert "ARM running at 2GHz" in answer.conditions


@pytest.mark.parametrize("case", CASES["states"], ids=lambda case: " ".join(case.get("causes", "?")))
def test_a_state_has_its_causes(asked, case):
    state = msgspec.convert({**case.get("state", {}), "shown": HEALTHY | case.get("shown", {})}, State)
    run = {name: case[name] for name in ("read", "board", "case") if name in case}
    answers = asked(state, **run, **case.get("given", {}))
    if "answers" in case:
        assert len(answers) == case["answers"]
        return
    first, *_ = answers
    assert causes(answers) == case["causes"]
    assert first.looked
    assert (first.ours is None) == ("samples" in case.get("given", {}))
    if "size" in case:
        assert first.causes[0].size == pytest.approx(case["size"], rel=1e-4)
    if "proof" in case:
        assert bool(first.causes[0].proof) == case["proof"]
    assert re.search(case.get("says", ""), "".join(cause.reason for cause in first.causes))


def test_what_holds_in_a_run_that_was_well_is_no_cause(asked, tmp_path):
    slow = {**HEALTHY, "queue.read_ahead_kb": 0}
    asked(State(shown=slow))
    other = tmp_path / "results/r1"
    assert [answer.causes for answer in why.explain(other, "1m", str(other)).answers] == [(), ()]


def test_what_a_rule_says_of_a_fact_and_what_it_was_in_the_other_run_are_one_cause(asked, tmp_path):
    asked(State(shown={**HEALTHY, "queue.max_sectors_kb": 512}), read=300.0)
    (tmp_path / "results/r1").rename(tmp_path / "good")
    asked(State(shown={**HEALTHY, "queue.max_sectors_kb": 4}))
    answers = why.explain(tmp_path / "results/r1", "1m", str(tmp_path / "good")).answers
    (cause,) = (one for one in answers[0].causes if "max_sectors_kb" in str(one))
    assert "4 KiB (max_sectors_kb), in r1 it was 512" in str(cause)
    assert [word.split("echo ")[1].split()[0] for word in cause.back] == ["'4'", "'512'"]


def test_a_failed_case_says_itself_what_failed_before_anything_else(asked):
    failure = Failure(Kind.BOARD, "does not answer over eth1: check its address and cable", "ping")
    (answer,) = asked(State(shown=HEALTHY), samples=(), failures=(failure,), status=Status.FAILED)
    assert answer.failed == (failure.message,)


def test_figures_that_ti_measures_by_its_own_program_are_said_to_be(tmp_path):
    run = Run("r1", "am62xx_sk-fs", "full", os="Linux", release="11.00")
    slow = a_case(
        case="102400", tools={"fio": "3.36"}, samples=(Sample("write_throughput", 1.0, "MB/s", 0, 1),)
    )
    (answer,) = why.explain(spools.write(tmp_path, run, [slow])).answers
    assert "with filesystem_tests it would be" in answer.causes[0].reason


@pytest.mark.parametrize(("raw", "shared"), [("raw/all", True), ("raw/own", False)])
def test_the_rows_of_one_execution_share_its_state(asked, tmp_path, raw, shared):
    asked(State(shown={**HEALTHY, "cpu.policy0.scaling_max_freq": 500000}), raw=("raw/all",))
    folder = tmp_path / "results/r1"
    lines = (folder / "results.jsonl").read_text().splitlines()
    other = msgspec.json.decode(lines[0]) | {"case": "4k", "raw": [raw]}
    other.pop("state")
    with (folder / "results.jsonl").open("ab") as file:
        file.write(msgspec.json.encode(other) + b"\n")
    answer, _ = why.explain(folder, "4k").answers
    assert answer.looked == shared
    assert [cause.rule for cause in (*answer.causes, *answer.read)] == ["limited"] * shared


def test_a_case_that_is_not_there_is_a_wrong_call(asked):
    with pytest.raises(UsageError, match="emmc_ext4_fio_1g"):
        asked(State(), case="ospi")


def test_the_command_says_the_cause_and_how_to_prove_it(asked, tmp_path, capsys):
    asked(State(shown={**HEALTHY, "cpu.policy0.scaling_max_freq": 500000, "card.name": "\x1b[2J"}))
    folder = str(tmp_path / "results/r1")
    assert main(["why", folder, "emmc"]) == ExitStatus.OK
    printed = capsys.readouterr().out
    assert "limited to 500 of 2000 MHz (up to 4.00 times)" in printed
    assert "evmperf ab" in printed


@pytest.mark.parametrize("case", CASES["arguments"], ids=lambda case: case["here"])
def test_arguments_of_the_kernel_that_only_one_run_has_are_a_cause(asked, tmp_path, case):
    asked(State(shown=HEALTHY))
    folder = tmp_path / "results/r1"
    for name in ("here", "there"):
        shutil.copytree(folder, tmp_path / name)
        facts = {"command_line": case[name]}
        told = json.loads((folder / "run.json").read_text()) | {"facts": facts, "id": name}
        (tmp_path / name / "run.json").write_text(json.dumps(told))
    assert causes(why.explain(tmp_path / "here", "1m", str(tmp_path / "there")).answers) == case["causes"]


def test_a_boot_time_names_what_took_longest(tmp_path, capsys):
    said = (
        *LOADER,
        (
            1.5,
            "[    0.000000] Boot\r\n[    0.100000] initcall a_probe+0x0/0x8 returned 0 after 90000 usecs\r\n",
        ),
        (1.9, "[    0.500000] Run /sbin/init as init process\r\n"),
        (3.9, "\r\nboard login: "),
    )
    folder = bootruns.written(tmp_path, [said])
    (folder / "facts").mkdir()
    (folder / "facts/systemd").write_text(" 1.500s dev-mmcblk1p2.device\n  30ms ssh.service\n")
    chain = "multi-user.target @2.1s\n└─ssh.service @2.0s +30ms\n  └─basic.target @1.9s\n"
    (folder / "facts/systemd-chain").write_text(f"The time when unit became active or started ...\n\n{chain}")
    startup = "Startup finished in 612ms (kernel) + 2.013s (userspace) = 2.625s\n"
    (folder / "facts/systemd-time").write_text(startup)
    (folder / "facts/dmesg").write_text("[    0.650000] systemd[1]: systemd 255.4 running in system mode\n")
    stash = fdt.FDT()
    for node, (stage, at_us) in enumerate((("start_kernel", 820_000), ("board_init_f", 100_000))):
        stash.set_property("name", stage, path=f"/bootstage/{node}")
        stash.set_property("mark", at_us, path=f"/bootstage/{node}")
    (folder / "facts/device_tree").write_text(stash.to_dtb(version=17).hex())
    assert main(["why", str(folder), "boot_time"]) == 0
    text = capsys.readouterr().out
    assert "ssh.service (systemd, on its critical chain)" in text
    assert "seconds after each mark in cycle 1, the median (in cycle 1, the slowest): " in text
    assert "1. 2.000 s in init_started: after 'Run /sbin/init as init process' (console)" in text
    assert "2. 1.500 s in init_started: dev-mmcblk1p2.device (systemd, beside" in text
    assert "0.090 s in first_kernel_line: initcall a_probe (kernel)" in text
    assert "args:initcall_blacklist=a_probe" in text
    assert "no messages of spl_banner" in text
    assert re.search(r"start: 0.612 s by systemd .* 0.650 s by .* 0.038 s apart", text)
    assert re.search(
        r"U-Boot to the kernel's start: 0.720 s by U-Boot's .* 0.800 s by .* 0.080 s apart", text
    )
    assert "stages are not timed" not in text
    kept = folder / "results.jsonl"
    kept.write_text(kept.read_text().replace('"uboot_banner"', '"later_mark"'))
    assert main(["why", str(folder), "boot_time"]) == 0, "a mark of a later evmperf is passed over"


def boots_of(folder, waits, name="r1"):
    """A run's folder with a series of boots that wait so long for a partition."""
    wait = "\r\x1b[K[ ***  ] A start job is running for /dev/mmcblk1p3 (18s / 1min 30s)\r\n"
    boots = [
        (
            *LOADER,
            (1.5, "[    0.000000] Booting Linux\r\n"),
            (1.9, "[    0.500000] Run /sbin/init as init process\r\n"),
            (1.9 + waits_s, wait if waits_s > 5 else ""),
            (2.5 + waits_s, "\r\nboard login: "),
        )
        for waits_s in waits
    ]
    return bootruns.written(folder, boots, name, command_line="console=ttyS2,115200n8 root=/dev/mmcblk1p2")


def boot_causes(folder, against=""):
    (answer,) = (a for a in why.explain(folder, "boot_time", against).answers if a.metric == "boot_time")
    return [cause.reason for cause in answer.causes]


def test_the_slowest_boot_of_a_series_is_explained(tmp_path):
    slowest, quiet, *_ = boot_causes(boots_of(tmp_path, (2.0, 2.1, 18.1, 1.9, 2.0)))
    assert "cycle 3 took 19.7 s" in slowest
    assert "running for /dev/mmcblk1p3" in slowest
    assert "of the serial line" in quiet


def test_each_outlier_that_the_table_marks_is_explained(tmp_path):
    waits = [2.0, 2.01] * 4 + [2.45, 2.0, 2.4, 2.01]
    told = [cause for cause in boot_causes(boots_of(tmp_path, waits)) if "cycle" in cause]
    assert ["cycle 9 took" in told[0], "cycle 11 took" in told[1], len(told)] == [True, True, 2]


def test_boots_of_two_runs_are_compared_part_by_part(tmp_path):
    good = boots_of(tmp_path / "good", (2.0, 2.0, 2.0), "good")
    first, *_ = boot_causes(boots_of(tmp_path / "bad", (2.5, 2.5, 2.5), "bad"), str(good))[1:]
    assert first.startswith("0.500 s more")
    assert "init_started" in first
    assert (
        len([c for c in boot_causes(boots_of(tmp_path / "same", (2.0,) * 3, "s"), str(good)) if "more" in c])
        == 0
    )
