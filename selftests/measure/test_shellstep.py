"""Steps through a real shell: outputs come back whole, or not at all."""

import os
import re
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evmperf.measure import shellstep
from evmperf.measure.bench import ShellReply, StepOutput
from evmperf.model.errors import LabError, RefusedOutput, ToolError
from selftests.support import hostile
from selftests.support.fakes import LocalShell
from selftests.support.hostile import HEAD
from selftests.support.recordings import KERNEL_LINE

REPOSITORY = Path(__file__).parents[2]
FILES = {"log": "", "fio.json": '{"jobs": []}\n' * 20, "stat.before": "cpu  1 2 3 4\n"}


MEMBERS = (hostile.member(f"./{name}", text.encode()) for name, text in FILES.items())
BODY = hostile.answer(hostile.tar(*MEMBERS)).removeprefix(HEAD)


def same_or_refused(text):
    try:
        assert shellstep.decode(text).files == FILES
    except RefusedOutput as error:
        assert error.raw == text  # noqa: PT017  # either outcome is right


def test_an_answer_is_status_busy_time_and_files():
    assert shellstep.decode(HEAD + BODY) == StepOutput(0, FILES, 2.5, 1, 10.25)
    assert shellstep.decode(HEAD.replace("step 0", "step 7") + BODY).status == 7


@given(st.integers(0, len(BODY) - 1), st.integers(0, 80), st.characters(min_codepoint=0, max_codepoint=127))
def test_changed_and_lost_characters_never_change_a_file(at, lost, character):
    same_or_refused(HEAD + BODY[:at] + (character + BODY[at + 1 :] if lost == 0 else BODY[at + lost :]))


@given(st.integers(1, len(BODY.rstrip()) - 1))
def test_a_cut_body_is_refused(at):
    with pytest.raises(RefusedOutput):
        shellstep.decode(HEAD + BODY[:at])


@pytest.mark.parametrize("garbage", [KERNEL_LINE, "\ufffd"])  # as the shells decode a byte that is no UTF-8
@given(st.integers(0, len(BODY.rstrip()) - 1))
def test_a_kernel_line_or_a_dead_byte_anywhere_in_the_body_is_refused(garbage, at):
    with pytest.raises(RefusedOutput, match="damaged"):
        shellstep.decode(HEAD + BODY[:at] + garbage + BODY[at:])


@pytest.mark.parametrize("head", ["", KERNEL_LINE, "step 0 10.25\n", "step x 1.0 2.0\n", "step 0 1 2\n"])
def test_a_garbled_first_line_is_refused(head):
    with pytest.raises(RefusedOutput, match="first line is garbled"):
        shellstep.decode(head + BODY)


@pytest.fixture
def shell(tmp_path):
    shell = LocalShell(tmp_path / "board")
    shellstep.install(shell)
    return shell


@pytest.mark.parametrize(
    "command",
    [
        'echo hello >"$OUT/x"; echo said; echo wrong >&2; exit 3',
        'printf \'%s\' "it\'s \\"quoted\\" \\$HOME `date`" >"$OUT/x"; echo said; exit 3',
        "# a long one\n" + ": padding;\n" * 200 + 'echo "o\'hello" >"$OUT/x"; echo said; exit 3',
    ],
)
def test_a_step_gives_status_log_and_files(shell, command):
    output = shellstep.run(shell, command, 10)
    assert (output.status, output.fetches) == (3, 1)
    assert output.files["log"].startswith("said\n")
    assert set(output.files) == {"log", "x"}
    assert output.busy_s >= 0
    # A long one is brought in pieces that a small shell can edit.
    assert max(len(command) for command in shell.asked) <= 1024


def test_outputs_of_the_step_before_are_gone(shell):
    shellstep.run(shell, 'echo 1 >"$OUT/old"', 10)
    assert set(shellstep.run(shell, "true", 10).files) == {"log"}


def test_a_step_that_hangs_is_killed_with_all_it_started(shell, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(ToolError, match="did not end within"):
        shellstep.run(shell, f"trap '' INT; sleep 1000 >{pipe} & sleep 1000 >{pipe}", 0.3)
    # the pipe's other end closes when its last holder is gone
    assert select.select([end], [], [], 5)[0]
    assert os.read(end, 1) == b""
    os.close(end)


def test_a_quiet_step_that_succeeds_brings_nothing_and_one_that_fails_its_log(shell):
    fine = shellstep.run(shell, 'echo said; echo 1 >"$OUT/x"', 10, quiet=True)
    assert (fine.status, fine.files) == (0, {})
    failed = shellstep.run(shell, "echo said; exit 2", 10, quiet=True)
    assert (failed.status, failed.files) == (2, {"log": "said\n"})


def test_binary_output_does_not_disturb(shell):
    files = shellstep.run(shell, 'head -c 5000 /dev/urandom >"$OUT/noise"; echo ok', 10).files
    assert files["log"] == "ok\n"


OTHER = """\
import pathlib, sys
from evmperf.measure import shellstep
from evmperf.model.errors import LabError
from selftests.support.fakes import LocalShell
try:
    shellstep.install(LocalShell(pathlib.Path(sys.argv[1])))
except LabError as error:
    print(error)
"""


@pytest.fixture
def other(shell):
    """A function that lets another session begin on the machine, from a host; returns what it says."""

    def begin(host=""):
        own = ["unshare", "--uts", "sh", "-c", f'hostname {host} && exec "$@"', "sh"] if host else []
        command = [*own, sys.executable, "-c", OTHER, str(shell.folder.parent)]
        return subprocess.run(command, check=True, cwd=REPOSITORY, capture_output=True, text=True).stdout

    return begin


def test_a_session_whose_machine_another_one_took_says_so(shell, other):
    shellstep.run(shell, "true", 10)
    assert other() == ""  # of this host, where locks of devices keep two apart
    with pytest.raises(LabError, match="another evmperf began to measure there"):
        shellstep.run(shell, "true", 10)


def test_a_second_session_is_refused_while_a_step_runs_with_its_holder_and_time(shell, other, tmp_path):
    said = []
    wait = f"touch {tmp_path}/runs; until [ -e {tmp_path}/asked ]; do sleep 0.05; done"
    step = threading.Thread(target=lambda: said.append(shellstep.run(shell, wait, 60)))
    step.start()
    while not (tmp_path / "runs").exists():
        time.sleep(0.01)
    refusal = other()
    (tmp_path / "asked").touch()
    step.join()
    assert re.search(r"in use: \S+@\S+ since \d\d:\d\d UTC measures there", refusal)
    assert said[0].status == 0
    assert other() == ""


def test_a_second_session_of_another_host_is_refused_between_steps(shell, other):
    if os.geteuid() != 0:
        pytest.skip("needs root: the session of another host has a host name of its own")
    assert "in use: " in other("desk7")  # nothing was measured yet
    shellstep.run(shell, "true", 10)
    assert "in use: " in other("desk7")
    assert shellstep.run(shell, "true", 10).status == 0
    # A minute after its last step, or after a boot, the machine is free.
    (head,) = shell.folder.parent.glob("**/head")
    head.write_text("step 0 1.00 1.00\n")
    assert other("desk7") == ""


def test_the_end_removes_the_folder_but_nothing_of_others_or_to_be_put_back(shell, other):
    saved = shell.folder / "governors"
    saved.touch()
    shellstep.leave(shell)
    assert saved.exists()
    saved.unlink()
    assert other() == ""
    shellstep.leave(shell)
    assert shell.folder.exists()
    shellstep.install(shell)
    shellstep.leave(shell)
    assert not shell.folder.exists()


@pytest.mark.parametrize("shell_of_the_board", ["bash", "dash"])
@pytest.mark.parametrize(
    "began", ["a[$(touch {trap})]", "1.5", "", "x", "$(touch {trap})", "1 2 3; touch {trap}"]
)
def test_what_stands_in_a_holders_file_is_never_a_command(tmp_path, shell_of_the_board, began):
    """bash runs a command that stands in the index of an array in what it calculates."""
    folder, trap = tmp_path / "evmperf", tmp_path / "trap"
    folder.mkdir()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    (folder / "holder").write_text(f"{boot} {began.format(trap=trap)} step-1 another bob@desk7\n")
    (folder / "head").write_text(f"step 0 1.0 {began.format(trap=trap)}\n")
    (folder / "group").write_text(f"$(touch {trap})\n")
    said = subprocess.run(
        [shell_of_the_board, "-c", shellstep._taking(str(folder))], capture_output=True, text=True, check=True
    )
    assert (said.stdout, trap.exists()) == ("", False)
    assert shellstep._STEP in (folder / "holder").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a folder of another user")
@pytest.mark.parametrize("how", ["owned", "link", "link to nothing"])
def test_a_folder_of_another_user_is_not_taken(tmp_path, how):
    shell = LocalShell(tmp_path / "board")
    theirs = tmp_path / "theirs"
    if how == "owned":
        shell.folder.mkdir()
        os.chown(shell.folder, 65534, 65534)
    else:
        shell.folder.symlink_to(theirs)
        if how == "link":
            theirs.mkdir()
            (theirs / "step-theirs").touch()
    with pytest.raises(ToolError, match="another user's"):
        shellstep.install(shell)
    assert [path.name for path in tmp_path.glob("theirs/*")] == (["step-theirs"] if how == "link" else [])
    assert how != "owned" or not [*shell.folder.iterdir()]


def garbled(reply):
    return ShellReply(reply.status, reply.text[:40] + KERNEL_LINE + reply.text[40:])


@pytest.mark.parametrize("times", [1, 2])
def test_a_damaged_answer_is_fetched_again_without_repeating_the_step(shell, times, tmp_path):
    """Damaged within, or without its whole body."""
    counter = tmp_path / "counter"
    shell.scripted = [garbled, lambda reply: ShellReply(0, reply.text.partition("\n")[0] + "\n")][:times]
    output = shellstep.run(shell, f"echo x >>{counter}; cat {counter}", 10)
    assert output.files["log"] == "x\n"
    assert output.fetches == times + 1


def test_an_answer_damaged_three_times_is_refused(shell):
    shell.scripted = [garbled] * 3
    with pytest.raises(RefusedOutput, match=re.escape("(3 times)")) as refusal:
        shellstep.run(shell, "true", 10)
    assert KERNEL_LINE in refusal.value.raw


def test_a_board_that_cannot_be_written_is_a_tools_error(tmp_path):
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "evmperf").write_text("in the way")
    with pytest.raises(ToolError, match="cannot be written"):
        shellstep.install(LocalShell(tmp_path / "board"))
