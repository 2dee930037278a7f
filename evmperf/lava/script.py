"""The shell text of a native job: the catalogue's steps, run on the board by LAVA's test shell."""

import re
import shlex
from collections.abc import Mapping

from evmperf.benchmarks.step import CleanUp, Measure, Prepare
from evmperf.boards.board import Board
from evmperf.lava import marked
from evmperf.lava.selection import NativeStep, Selection, case_name, steps_of
from evmperf.measure import provenance, shellstep
from evmperf.model import places
from evmperf.model.errors import UsageError

NO_CHECKOUT = "evmperf-is-not-in-EVMPERF_HOME"
LAB_BROKEN = "evmperf-calls-the-lab-broken"
NOT_RUN = "evmperf-did-not-measure"
"""What a lab-host job raises when pytest did not measure."""
NO_OVERLAY = "no-test-shell-came-over-the-network"
"""What a job on the board raises when LAVA's test shell could not be fetched."""
OTHER_IMAGE = "the-board-runs-another-image"
"""What a job on the board raises when what booted is not the image that it was given."""

_QUESTIONS = {
    "image_kernel": ("kernel", "uname -r"),
    "image_version": ("build of the kernel", "uname -v"),
    "image_release": (
        "release",
        "for f in /etc/os-release /etc/evmperf-release; do [ ! -r $f ] || . $f; done; "
        f'case "$ID" in {"|".join(sorted(provenance.DISTRIBUTIONS))}) VERSION_ID=;; esac; '
        'echo "${BUILD_ID:-$VERSION_ID}"',
    ),
    "image_machine": ("machine", "cat /etc/hostname"),
}
"""What of a header an image says of itself: in words, and as a question to the board's shell."""

_FACTS_S = 60.0
_WAIT = "30m"
"""How long a job on the lab's Labgrid host waits for a board that somebody else holds."""
_END = "EVMPERF_END"

# LAVA's run.sh has `set -ex`: an echo of every command would tear the marks.
_FUNCTIONS = f"""\
set +ex
F={places.STEP_FOLDER}
mkdir -p $F; rm -f $F/shared.*
dmesg -n 1
cat >$F/step <<'{_END}'
@WRAPPER@
{_END}
evm_twice() {{ for copy in {" ".join(str(n + 1) for n in range(marked.COPIES))}; do "$@"; done; }}
evm_show() {{
  echo "@evmperf begin $copy $sum $label"; cat $F/reply; echo "@evmperf end $copy $sum $label"
}}
evm_step() {{ # LABEL SUM SECONDS [quiet], the command on standard input
  label=$1 sum=$2 seconds=$3; shift 3
  cat >$F/command
  limit="timeout -s KILL $seconds"
  command -v timeout >/dev/null || limit=
  $limit sh -c ". $F/step" step "$(cat $F/command)" "$@" </dev/null >$F/reply 2>/dev/null
  [ $? -lt 124 ] || echo "{marked.HUNG} $seconds" >$F/reply
  evm_twice evm_show
  read -r word status rest <$F/reply
  [ "$word $status" = "step 0" ]
}}
evm_begin() {{ ok=pass go=1; }}
evm_prepare() {{ # a step that the others need
  if [ $go = 1 ]; then evm_step "$@" quiet || {{ ok=fail go=0; }}; else cat >/dev/null; fi
}}
evm_measure() {{ if [ $go = 1 ]; then evm_step "$@" || ok=fail; else cat >/dev/null; fi; }}
evm_shared() {{ # a step that several cases read
  if [ -e "$F/shared.$2" ]; then cat >/dev/null; return; fi
  evm_measure "$@"; [ $go = 0 ] || : >"$F/shared.$2"
}}
evm_always() {{ evm_step "$@" quiet || ok=fail; }}
evm_end() {{ lava-test-case "$1" --result $ok; }}
evm_same() {{ # WHAT ASKED FOUND
  [ -n "$3" ] && [ "$(echo $2)" != "$(echo $3)" ] || return 0
  evm_twice echo "its $1 is $3, the image's is $2"
  lava-test-raise {OTHER_IMAGE}
  exit 1
}}"""


def native_steps(board: Board, selection: Selection, header: Mapping[str, str]) -> list[str]:
    """The steps of the test definition, one a case; raises UsageError."""
    steps = [prologue(header), facts(selection.tools), *identified(header)]
    for benchmark, case in selection.cases:
        calls = steps_of(benchmark, board, case, selection.profile)
        end = f"evm_end {shlex.quote(case_name(benchmark, case))}"
        lines = (_call(step, benchmark.label(case, step)) for step in calls)
        steps.append("\n".join(["evm_begin", *lines, end]))
    return steps


def host_steps(
    board: Board, selection: Selection, header: Mapping[str, str], *, whole: bool, image: str = ""
) -> list[str]:
    """The steps of a lab-host job: one call of pytest, which first puts `image` ("": none) on the board.
    The host sets EVMPERF_HOME, EVMPERF_BOARDS (its board files) and EVMPERF_RESULTS.
    """
    words = [f"--profile={selection.profile}", "--run-kind=lava", f"--wait={_WAIT}"]
    if not whole:
        # As the ids of the tests begin, so that no name is taken for part of another.
        chosen = " or ".join(f"[{benchmark.name}-" for benchmark in selection.benchmarks)
        words += [f"-k {shlex.quote(chosen)}"]
    words += [f"--release={shlex.quote(header['release'])}"] if header["release"] else []
    words += [f"--image={shlex.quote(image)}"] if image else []
    name = shlex.quote(board.file_name)
    text = f"""\
set +ex
cd "${{EVMPERF_HOME:-/opt/evmperf}}" || {{ lava-test-raise {NO_CHECKOUT}; exit 1; }}
echo {shlex.quote(marked.header_line(header))}
board=${{EVMPERF_BOARDS:-env}}/{name}
[ -e "$board" ] || board={name}
export LG_PLACE="${{LG_PLACE:-{shlex.quote(board.file.stem)}}}"
.venv/bin/pytest --lg-env "$board" --results="${{EVMPERF_RESULTS:-results}}" {" ".join(words)}
status=$?
case $status in
0 | 1) ;;
3) lava-test-raise {LAB_BROKEN} ;;
*) lava-test-raise {NOT_RUN} ;;
esac"""
    return [text]


def prologue(header: Mapping[str, str]) -> str:
    """What makes the test shell ready, and says in the log what job this is."""
    functions = _FUNCTIONS.replace("@WRAPPER@", shellstep.wrapper().rstrip("\n"))
    return f"{functions}\nevm_twice echo {shlex.quote(marked.header_line(header))}"


def identified(header: Mapping[str, str]) -> list[str]:
    """The step that ends the job unless the board runs its image; none for a job without an image."""
    calls = [
        f'evm_same {shlex.quote(what)} {shlex.quote(header[key])} "$({question})"'
        for key, (what, question) in _QUESTIONS.items()
        if header.get(key)
    ]
    return ["\n".join(calls)] if calls else []


def facts(tools: list[str]) -> str:
    """The step that gathers the board's facts and the tools' versions."""
    return _heredoc(f"evm_step {provenance.LABEL}", provenance.script(tools), _FACTS_S)


def _call(step: NativeStep, label: str) -> str:
    match step:
        case Prepare():
            word = "evm_prepare"
        case CleanUp():
            word = "evm_always"
        case Measure():
            word = "evm_shared" if step.shared else "evm_measure"
    return _heredoc(f"{word} {shlex.quote(label)}", step.command, step.timeout_s)


def _heredoc(call: str, command: str, timeout_s: float) -> str:
    if re.search(rf"^{_END}$", command, re.MULTILINE):
        raise UsageError(f"the step {call} has a line {_END}, which would end it in a LAVA job")
    if re.search(r"--cmd|--shell", command) and re.search(r"\$\d", command):
        # LAVA 2023.01 puts a backslash before the arguments of such a text (TestRunnerAction).
        raise UsageError(f"the step {call} has --cmd or --shell beside $1, which LAVA changes")
    return f"{call} {marked.checksum(command)} {timeout_s:.0f} <<'{_END}'\n{command}\n{_END}"
