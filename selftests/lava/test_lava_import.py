"""Reading jobs' logs: native jobs run by LAVA's own scripts, boot times, and what logs can hold."""

import errno
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.families.boot import readings
from evmperf.boards import board as boards
from evmperf.boards.console.marks import Phase
from evmperf.commands.cli import main as cli
from evmperf.commands.lava import joblog
from evmperf.commands.lava.importing import LogSource, read
from evmperf.commands.lava.render import JobConsole
from evmperf.commands.lava.replay import LoggedJob, find_boots
from evmperf.measure.runs.spool import RECORDS, read_records, read_results
from evmperf.model.errors import BoardError, UsageError
from evmperf.model.exits import ExitStatus
from selftests.support import lava_jobs
from selftests.support.lava_jobs import CATALOGUE, END
from selftests.support.lava_packages import unpacked

BOARD = boards.load(boards.find("virtual"))
SHELL = "usr/lib/python3/dist-packages/lava_dispatcher/lava_test_shell"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What the board printed, by keyword; each job is run once."""
    kept = {}

    def output(keyword):
        if keyword not in kept:
            folder = tmp_path_factory.mktemp("job")
            kept[keyword] = lava_jobs.run(BOARD, unpacked() / SHELL, folder, keyword)
        return kept[keyword]

    # The real ones too: board files name them.
    known = {**catalogue.benchmarks(), **CATALOGUE}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "benchmarks", lambda: known)
        yield output


def imported(text, results, header=None, **more):
    entries = joblog.parse(text, "a log")
    header = header or joblog.read_header(entries, "a log")
    run, new = read(entries, header, LogSource("a log", **more), BOARD, results)
    folder = results / run.id
    measured = run.ending == "measured"
    return SimpleNamespace(run=run, new=new, folder=folder, results=read_results(folder), measured=measured)


def values(result):
    return [(s.metric, s.value, s.repetition) for s in result.samples]


def test_every_sample_comes_through_the_desks_parsers(outputs, tmp_path):
    done = imported(lava_jobs.log(outputs("plain"), END), tmp_path)
    first, second = done.results
    assert values(first) == [("value", 10, 0), ("value", 11, 1)]
    assert values(second) == [("value", 20, 0), ("value", 21, 1)]
    assert first.status == "measured"
    assert done.measured
    assert done.run.kind == "lava"
    assert done.run.exit_status == 0
    assert done.run.facts.kernel
    begin, end = done.run.started_ns, done.run.ended_ns
    times = [sample.time_ns for result in done.results for sample in result.samples]
    assert begin < times[0] < times[1] < times[2] < times[3] < end
    assert (done.folder / first.raw[0]).read_text() == "10\n"


def test_each_case_has_its_looks(outputs, tmp_path):
    done = imported(lava_jobs.log(outputs("plain or unlucky or together"), END), tmp_path)
    states = {(result.benchmark, result.case): result.state for result in done.results}
    assert states["together", "6"] is None  # shares the execution of the other
    first, second = states["plain", "1"], states["plain", "2"]
    assert first.shown["cpu.online"] == second.shown["cpu.online"]
    assert first.counted["shell.write_bytes"] >= len("10\n")  # of the job's shell, not of a step's own
    assert second.clock[0] < 1 < second.clock[1]
    # The case that failed has its looks, too.
    assert states["unlucky", "13"].seconds > 0
    assert states["together", "5"].seconds > 0
    assert done.run.facts.host_load is None


def test_a_look_that_is_damaged_costs_no_case(outputs, tmp_path):
    lines = outputs("plain").splitlines()
    looks = [line for line in lines if line.startswith("@evmperf begin") and " state " in line]
    assert len(looks) == 3 * joblog.COPIES
    # All copies of the look between the cases.
    kept = "\n".join(line for line in lines if line not in looks[joblog.COPIES : 2 * joblog.COPIES])
    done = imported(lava_jobs.log(kept, END), tmp_path)
    assert done.measured
    assert [values(result)[0][1] for result in done.results] == [10, 20]


def test_a_step_that_failed_fails_its_case_alone_and_lavas_script_reports_every_case(outputs, tmp_path):
    text = outputs("plain or unlucky")
    for name, said in (("plain.1", "pass"), ("plain.2", "pass"), ("unlucky.13", "fail")):
        assert f"<LAVA_SIGNAL_TESTCASE TEST_CASE_ID={name} RESULT={said}>" in text
    done = imported(lava_jobs.log(text, END), tmp_path)
    states = {result.benchmark: str(result.status) for result in done.results}
    assert states == {"plain": "measured", "unlucky": "failed"}
    (failure,) = done.results[-1].failures
    assert failure.step == "prepare"
    assert "prepare ended with status 1" in failure.message
    assert done.run.exit_status == 1


def test_a_shared_step_runs_once_and_one_that_hangs_is_ended(outputs, tmp_path):
    done = imported(lava_jobs.log(outputs("together"), END), tmp_path)
    assert [values(result) for result in done.results] == [[("value", 1, 0)]] * 2
    (hung,) = imported(lava_jobs.log(outputs("slow"), END), tmp_path / "slow").results
    (failure,) = hung.failures
    assert "did not end within 1 s" in failure.message
    assert failure.kind == "tool"


def test_a_job_and_a_copy_of_its_log_are_one_run_that_is_read_once(outputs, tmp_path):
    text = lava_jobs.log(outputs("plain"), END)
    first = imported(text, tmp_path, number=7, server="http://lava", device="am64x-01")
    assert (first.run.lab, first.run.place) == ("http://lava", "am64x-01")
    again, elsewhere = imported(text, tmp_path), imported(text, tmp_path / "elsewhere")
    assert (first.new, again.new, elsewhere.new) == (True, False, True)
    assert again.folder == first.folder
    assert len(list(read_records(first.folder))) == 2
    assert elsewhere.run.id == first.run.id
    assert read_results(elsewhere.folder) == read_results(first.folder)
    assert imported(text.replace("2026-11-20T22:00", "2026-11-20T22:01"), tmp_path).new
    assert len(list(tmp_path.glob("*/run.json"))) == 2


KERNEL = "[   12.345678] mmc0: cannot verify signal voltage switch"


def spoil(output, copies):
    """Put a kernel message into the middle of the value's first step, in so many copies."""
    lines = []
    for line in output.splitlines():
        lines.append(line)
        for copy in copies:
            if line.startswith(f"@evmperf begin {copy} ") and line.endswith("plain/1/try0"):
                lines.append(KERNEL)
    return "\n".join(lines)


def unmark(output, copies):
    """Put it into the middle of all marks of so many copies."""
    for copy in copies:
        output = output.replace(f"@evmperf end {copy} ", f"@evmperf en{KERNEL}\nd {copy} ")
    return output


def unsignal(output, _):
    """Put it into the middle of LAVA's own marks."""
    return output.replace("<LAVA_SIGNAL_TESTCASE", f"<LAVA_SIG{KERNEL}\nNAL_TESTCASE")


@pytest.mark.parametrize(
    ("damage", "copies", "states", "kept"),
    [
        (spoil, [1], "measured measured", [10, 11]),
        (spoil, [1, 2], "partial measured", [11]),
        (unmark, [1], "measured measured", [10, 11]),
        (unmark, [1, 2], "refused refused", []),
        (unsignal, [], "measured measured", [10, 11]),
    ],
)
def test_a_kernel_message_costs_what_it_hits_in_all_copies(
    *, outputs, tmp_path, damage, copies, states, kept
):
    done = imported(lava_jobs.log(damage(outputs("plain"), copies), END), tmp_path)
    first, second = done.results
    assert f"{first.status} {second.status}" == states
    assert first.values("value") == kept
    assert bool(second.samples) == bool(kept)
    assert first.conditions.get("fetched_again", 0) == ((damage, copies) == (spoil, [1]))
    assert ("garbled" in str(first.failures)) == (states == "partial measured")


@pytest.mark.parametrize("part", [0.3, 0.6, 0.9, 0.99])
def test_a_log_that_is_cut_is_refused_and_leaves_nothing(outputs, tmp_path, part, capsys):
    text = lava_jobs.log(outputs("plain"), END)
    file = tmp_path / "job.yaml"
    file.write_text(text[: int(len(text) * part)])
    results = tmp_path / "results"
    assert cli.main(["lava", "import", str(file), "--results", str(results)]) == ExitStatus.USAGE
    assert "cut" in (said := capsys.readouterr().err) or "got to its test shell" in said
    assert not results.exists()


def ending(kind, message):
    return {**END, "result": "fail", "error_type": kind, "error_msg": message}


def up_to(output, text):
    return output[: output.index(text)]


PANIC = "[   99.912345] Kernel panic - not syncing: sysrq triggered crash"

FAILED = {
    "cancelled": (ending("Canceled", "The job was canceled"), "", "lab", 3),
    "lost device": (ending("Infrastructure", "Connection closed"), "", "lab", 3),
    "server's bug": (ending("Bug", "NoneType"), "", "lab", 3),
    "wrong device": (ending("Configuration", "no u-boot"), "", "lab", 3),
    "dead shell": (ending("LAVATimeout", "lava-test-shell timed out"), "", "board", 1),
    "job time-out": (ending("Job", "job timed out after 60 seconds"), "", "board", 1),
    "no test shell": (ending("Test", joblog.RAISED["no_overlay"]), "", "lab", 3),
    "lab host's own": (ending("Test", joblog.RAISED["lab_broken"]), "", "lab", 3),
    "a case raised": (ending("Test", "something"), "", "tool", 1),
    "panic": (ending("Job", "wait for prompt timed out"), PANIC, "board", 1),
    "panic, then cancelled": (ending("Canceled", "The job was canceled"), PANIC, "lab", 3),
    "no image": (ending("Job", "http-download timed out"), "", "lab", 3),
}


@pytest.mark.parametrize("what", FAILED)
def test_lavas_failures_are_the_projects_kinds(outputs, tmp_path, what):
    last, said, kind, status = FAILED[what]
    output = up_to(outputs("plain"), "@evmperf begin 1 " + checksum_of("plain/2/prepare"))
    done = imported(lava_jobs.log(f"{output}{said}", last), tmp_path)
    assert done.results[0].status == "measured", "what was measured before it stays"
    assert done.results[1].status == "failed"
    assert done.results[1].failures[-1].kind == kind
    assert done.run.exit_status == status
    if said:
        assert ("panic" in done.run.outcome) is (kind == "board")


LOADER = "U-Boot 2024.04 (May 02 2024 - 01:02:03)"
OTHER = "U-Boot 2025.01 (Jan 01 2025 - 00:00:00)"
HERE = os.uname()


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ({"uboot": LOADER, "name": "a.wic.xz"}, ""),
        ({"uboot": OTHER, "name": "a.wic.xz"}, f"its U-Boot is '{LOADER}', the image's is '{OTHER}'"),
        ({"kernel": HERE.release, "version": HERE.version}, ""),
        ({"kernel": "6.12.43-ti"}, "did not boot the image"),
        ({"kernel": HERE.release, "version": "#9 it's another"}, "did not boot the image"),
        ({"machine": "am64xx-evm"}, ""),  # nothing to compare with
    ],
)
def test_a_board_that_runs_another_system_than_its_image_gives_no_figures(outputs, tmp_path, says, told):
    text = lava_jobs.log(f"U-Boot SPL 2024.04 (x)\n{LOADER}\n{outputs('plain')}", END)
    header = joblog.read_header(joblog.parse(text, "a log"), "a log")
    done = imported(text, tmp_path, {**header, **{f"image_{key}": value for key, value in says.items()}})
    assert done.run.facts.provisioned == says
    assert done.measured == any(result.samples for result in done.results) == (not told)
    assert done.run.exit_status == (3 if told else 0)
    assert told in done.run.outcome


def checksum_of(label):
    _, case, name = label.split("/")
    benchmark = CATALOGUE["plain"]
    (chosen,) = (c for c in benchmark.cases("quick") if c.label == case)
    commands = {s.name: s.command for s in benchmark.declared_steps(BOARD, chosen, "quick")}
    return f"{joblog.checksum(commands[name])} {label}"


def test_a_log_of_another_catalogue_is_refused(outputs, tmp_path, monkeypatch):
    changed = lava_jobs.made_up("plain", lava_jobs.slow_steps, ["1", "2"], repeats=2)
    text = lava_jobs.log(outputs("plain").replace("plain/1/try0", "plain/1/hang"), END)
    monkeypatch.setattr(catalogue, "benchmarks", lambda: {"plain": changed})
    with pytest.raises(Exception, match="plain/1/hang ran another command"):
        imported(text, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing_half_written(outputs, tmp_path, monkeypatch, capsys):
    def full(descriptor):
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == RECORDS:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    text = lava_jobs.log(outputs("plain"), END)
    monkeypatch.setattr(os, "fsync", full)
    file = tmp_path / "job.yaml"
    file.write_text(text)
    results = tmp_path / "results"
    assert cli.main(["lava", "import", str(file), "--results", str(results)]) == 3
    assert "cannot be written" in capsys.readouterr().err
    assert list(results.iterdir()) == []


def test_the_header_survives_lavas_quoting():
    header = {"schema": "1", "kind": "native", "board_file": "a b.yaml", "profile": "quick"}
    header |= {"benchmarks": "emmc_ext4,emmc_vfat", "release": 'R "11" \\'}
    line = joblog.header_line(header)
    assert json.dumps(line) == f'"{line}"'
    assert joblog.read_header([joblog.LogEntry(0, "target", line)], "a log") == header
    with pytest.raises(UsageError, match="a log: not the log"):
        joblog.read_header([joblog.LogEntry(0, "target", line[:-12])], "a log")


def test_entries_in_yaml_that_is_no_json_are_read():
    text = r'- {"dt": "2026-11-20T22:00:00.000001", "lvl": "target", "msg": "\e[0m"}'
    (entry,) = joblog.parse(f"{text}\n", "log")
    assert entry.text == "\x1b[0m"
    assert entry.time_ns == 1795212000_000001_000


CYCLES = ["", "init=/bin/sh"]
LOG = (Path(__file__).parents[1] / "data/lava/boots.log").read_text()


def found(text=LOG):
    return find_boots(joblog.parse(text, "log"), JobConsole(BOARD), CYCLES)


def test_the_published_figure_is_between_lavas_stamps():
    (first, second), others = found()
    assert ([first.kernel_arguments, second.kernel_arguments], others) == (CYCLES, [])
    # "Starting kernel ..." 07:23:05.006722, "Matched prompt ... login: " 07:23:19.824412
    assert {r.metric: r.value for r in readings(first)}["boot_time"] == pytest.approx(14.81769)
    assert {r.error for r in readings(first)} == {0.15}, "stated, so it is not refused"
    # 07:23:24.501681, 07:23:32.712876
    assert {r.metric: r.value for r in readings(second)}["boot_time"] == pytest.approx(8.211195)


def test_the_power_is_on_when_the_last_switching_has_ended():
    boot = found()[0][0]
    # "Returned 0" of the second command at 07:23:02.494703; the log is in UTC.
    assert boot.marks[Phase.POWER_ON].wall_ns == 1795245782_494703_000
    assert boot.marks[Phase.UBOOT_BANNER].text == "U-Boot 2025.01 (Jan 01 2025 - 00:00:00 +0000)"
    assert Phase.FIRST_OUTPUT not in boot.marks, "LAVA does not read while it switches"
    assert boot.marks[Phase.PROMPT].error_s == 0.15


def test_cycles_come_by_their_kernel_arguments():
    log = LoggedJob(BOARD, 0, *found(), {}, None)
    assert log.cold_boot("init=/bin/sh").kernel_arguments == "init=/bin/sh"
    assert log.cold_boot("").kernel_arguments == ""
    with pytest.raises(BoardError, match="no further power cycle"):
        log.cold_boot("")
    assert len(log.boots()) == 2
    assert log.boots() == []


def test_a_cycle_that_lava_repeated_is_a_failed_one():
    lines = LOG.splitlines(keepends=True)
    start = next(n for n, line in enumerate(lines) if "start: 4.4.1 reset-device" in line)
    prompt = next(n for n, line in enumerate(lines) if "Matched prompt #11" in line)
    again = lines[:prompt] + lines[start:]
    (first, second, third), _ = found("".join(again))
    assert [one.kernel_arguments for one in (first, second, third)] == [CYCLES[0], *CYCLES]
    assert isinstance(first.error, BoardError)
    assert second.error is None


def test_a_prompt_before_the_kernel_is_no_boot():
    text = LOG.replace("Starting kernel", "Staring kernel").replace("[    0.000000]", "[    0.1]")
    assert all(Phase.PROMPT not in boot.marks for boot in found(text)[0])


def test_no_line_of_the_boards_is_a_power_cycle():
    first, *rest = LOG.splitlines(keepends=True)
    forged = [line.replace('"lvl": "debug"', '"lvl": "target"') for line in rest if "reset-device" in line]
    assert len(forged) == 4
    (boots, _), (forgeries, _) = found(), found("".join([first, *rest[:99], *forged, *rest[99:]]))
    assert [boot.started_ns for boot in forgeries] == [boot.started_ns for boot in boots]
