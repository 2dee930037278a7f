import math
import os
import random
import re
import signal
import subprocess
import threading

import pytest

from evmperf.commands.cli.main import main
from evmperf.judge import gitrange, paired, search
from evmperf.judge.experiment import NOTHING, Round
from evmperf.judge.search import BAD, CANDIDATE, GOOD, Bisection, Bisector, StepAnswer
from evmperf.measure.signals import Signals
from evmperf.model.errors import BoardError, LabError, UsageError
from selftests.support.placelab import until


class Board:
    """Boots in one second, 15 % more from version `first` on; some versions do not boot."""

    def __init__(self, first, *, noise=0.02, dead=(), slower=1.15):
        self.first, self.noise, self.dead, self.slower = first, noise, dead, slower
        self.random = random.Random(4)
        self.broken = {}
        self.measured = 0

    def measure(self, asked, entry, _):
        self.measured += 1
        if self.broken.get(entry.board, 1e9) < self.measured:
            raise LabError(f"{entry.board}: the power switch does not answer")
        number = {GOOD: 0, BAD: len(asked.versions) - 1}.get(entry.side)
        if number is None:
            number = asked.versions.index(entry.version)
        if entry.side == CANDIDATE and number in self.dead:
            entry.left_out = NOTHING
            return
        entry.left_out = ""
        entry.value = (self.slower if number >= self.first else 1.0) * math.exp(
            self.random.gauss(0, self.noise)
        )
        entry.seconds = 20.0


def make(count=16, **given):
    fields = {
        "id": "bisect-1",
        "boards": ["evm.yaml"],
        "metrics": ["boot_time_mmcsd/default/boot_time"],
        "sides": {GOOD: [], BAD: [], CANDIDATE: ["args:{}"]},
        "seed": "s",
        "versions": [f"v{number}" for number in range(count)],
    }
    return Bisection(**fields | given)


def run(board, asked):
    return search.bisect(Bisector(asked, board.measure, lambda _: None))


@pytest.mark.parametrize("first", [1, 2, 7, 8, 14, 15])
def test_the_first_bad_version_is_named(first):
    asked = make()
    found = run(Board(first), asked)
    assert (found.before, found.version) == (f"v{first - 1}", f"v{first}")
    assert found.probability > 0.95
    assert len(asked.steps) <= 4


def test_a_clear_difference_takes_few_rounds_and_a_noisy_one_more():
    quiet, noisy = make(), make()
    run(Board(7, noise=0.01), quiet)
    run(Board(7, noise=0.08), noisy)
    assert len(quiet.rounds) <= 80
    assert len(noisy.rounds) > 2 * len(quiet.rounds)


def test_good_and_bad_that_do_not_differ_have_no_culprit():
    asked = make(blocks=20)
    assert run(Board(7, slower=1.0), asked) is None
    assert len(asked.rounds) == 40


def test_versions_that_do_not_boot_are_gone_around():
    found = run(Board(9, dead=(7, 8)), make())
    assert found.why
    assert (found.before, found.version) == ("v6", "v9")
    assert str(found).startswith("between v6 and v9, not closer: v7 not measured 2 times in a row")
    assert run(Board(12, dead=(7, 8)), make()).version == "v12"


def test_versions_halfway_between_good_and_bad_end_the_search_before_the_night_is_spent():
    class Halfway(Board):
        def measure(self, asked, entry, _):
            super().measure(asked, entry, ())
            if entry.side == CANDIDATE:
                entry.value = math.sqrt(self.slower)

    asked = make(count=32, blocks=12)
    found = run(Halfway(9), asked)
    assert len(asked.steps) == 3
    assert (found.before, found.version) == ("v0", "v31")
    assert re.search("12 blocks .* 3 versions: .*--rounds", str(found))


def test_a_dead_board_is_exchanged_and_good_and_bad_measured_anew():
    board = Board(9)
    board.broken["evm.yaml"] = 12
    asked = make(boards=["evm.yaml", "spare.yaml"])
    assert run(board, asked).version == "v9"
    assert asked.boards == ["spare.yaml"]
    first = [entry for entry in asked.rounds if entry.board == "spare.yaml"][:8]
    assert {entry.side for entry in first} == {GOOD, BAD}


def test_without_a_spare_the_lab_is_what_is_broken():
    board = Board(9)
    board.broken["evm.yaml"] = 12
    with pytest.raises(LabError, match="power switch"):
        run(board, make())


def test_a_good_version_that_does_not_boot_is_no_candidates_fault():
    class Dead(Board):
        def measure(self, asked, entry, _):
            entry.left_out = NOTHING
            if entry.side != GOOD:
                super().measure(asked, entry, ())

    with pytest.raises(BoardError, match="GOOD failed 3 times, BAD failed 0 times"):
        run(Dead(3), make())


def test_it_goes_on_from_its_state(tmp_path):
    board, asked = Board(9), make()
    board.broken["evm.yaml"] = 25

    def keep(now):
        now.save(tmp_path)

    with pytest.raises(LabError):
        search.bisect(Bisector(asked, board.measure, keep))
    again = Bisection.load(tmp_path)
    assert again.rounds == asked.rounds
    board.broken.clear()
    assert search.bisect(Bisector(again, board.measure, keep)).version == "v9"
    assert Bisection.load(tmp_path).rounds[: len(asked.rounds)] == asked.rounds


def test_a_candidate_in_the_middle_is_neither():
    assert not paired.likeness([(1.0, 1.15, math.sqrt(1.15))] * 8).decided
    assert paired.likeness([(1.0, 1.15, 1.15)] * 8).bad > 1 - paired.ERROR
    assert not paired.likeness([(1.0, 1.15, 1.0)] * 3).decided, "three blocks are an anecdote"


def test_one_odd_boot_does_not_decide():
    mostly_good = [(1.0, 1.15, 1.0), (1.0, 1.15, 1.01), (1.0, 1.15, 3.0), (1.0, 1.15, 0.99)]
    assert not paired.likeness(mostly_good).decided


@pytest.mark.parametrize("outlier", [1.0, 3.0])
def test_noise_as_large_as_the_difference_costs_blocks_but_gives_no_wrong_answers(outlier):
    source, noise, bad = random.Random(2), 0.12, math.log(1.15)
    wrong = right = 0
    for _ in range(40):
        triples = []
        while not (found := paired.likeness(triples)).decided and len(triples) < 100:
            level = source.choice((0.5, 1.0, 1.5)) * (outlier if source.random() < 0.1 else 1.0)
            triples.append(
                tuple(math.exp(off + level * source.gauss(0, noise / 2**0.5)) for off in (0, bad, 0))
            )
        wrong += found.bad > 1 - paired.ERROR
        right += found.bad < paired.ERROR
    assert wrong <= 1
    assert right >= 10


@pytest.fixture
def repository(tmp_path):
    """Sixteen commits, each with its number in a file; from the tenth on it is slow."""
    folder = tmp_path / "repository"
    folder.mkdir()

    def git(*words):
        subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("config", "user.email", "a@b.example")
    git("config", "user.name", "A")
    for number in range(16):
        (folder / "number").write_text(f"{number}\n")
        git("add", "number")
        git("commit", "-qm", f"change {number}")
        git("tag", f"t{number}")
    return folder


def test_gits_own_engine_does_the_search(repository):
    good, bad = gitrange.commits(repository, "t0..t15")
    gitrange.git(repository, "bisect", "start", bad, good)
    assert gitrange.run(repository, ["sh", "-c", "[ $(cat number) -lt 9 ]"]) == 0
    first, possible = gitrange.first_bad(repository)
    assert gitrange.title(repository, first).endswith("change 9")
    assert possible == []
    gitrange.git(repository, "bisect", "reset")
    gitrange.git(repository, "bisect", "start", bad, good)
    script = "n=$(cat number); [ $n = 8 ] && exit 125; [ $n = 9 ] && exit 125; [ $n -lt 9 ]"
    gitrange.run(repository, ["sh", "-c", script])
    first, possible = gitrange.first_bad(repository)
    gitrange.git(repository, "bisect", "reset")
    assert not first
    assert {gitrange.title(repository, one).split()[-1] for one in possible} == {"8", "9", "10"}


def test_a_range_must_be_one(repository):
    for wrong in ("t0", "..t1", "t0..", "t0...t1", "t0..nothing"):
        with pytest.raises(UsageError):
            gitrange.commits(repository, wrong)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "needs board"),
        (["virtual.yaml"], "needs of"),
        (["virtual.yaml", "--of", "list", "--what", "args:{}", "--metric", "boot"], "BENCHMARK"),
        (["virtual.yaml", "--of", "list", "--what", "args:x", "--metric", "a/b/c"], "must hold {}"),
        (["virtual.yaml", "--of", "none", "--what", "args:{}", "--metric", "a/b/c"], "be read"),
    ],
)
def test_wrong_calls(words, told, capsys):
    assert main(["bisect", *words]) == 4
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "told"),
    [("# releases\n11.01\n", "needs at least two"), ("11.00\n11.01\n11.00\n", "names a version twice")],
)
def test_a_list_that_is_none_of_versions(text, told, tmp_path, capsys):
    (tmp_path / "list").write_text(text)
    words = ["--of", str(tmp_path / "list"), "--what", "args:{}", "--metric", "a/b/c"]
    assert main(["bisect", "virtual", *words]) == 4
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(("folder", "told"), [("nowhere", "nothing to resume"), ("a\0b", "ValueError: ")])
def test_a_step_that_breaks_stops_git_and_is_never_a_verdict(folder, told, tmp_path, capsys):
    assert main(["bisect", "--step", str(tmp_path / folder), "v1"]) == 128
    assert told in capsys.readouterr().err


def kept(folder, answers=None, slower=1.15, **given):
    """A bisection on disk of which good and bad are measured, and these versions are answered."""
    asked = make(**given)
    for number in range(6):
        for label, value in ((GOOD, 1.0 + number / 1000), (BAD, slower + number / 900)):
            asked.rounds.append(Round(number, label, "", asked.board, value=value, seconds=20.0))
    for version, answer in (answers or {}).items():
        asked.steps.append(search.Step(version, answer, {"good": 0.001, "bad": 0.999}.get(answer, 0.5), 3))
    asked.save(folder)
    return asked


def test_a_step_answers_as_git_wants_it(tmp_path, capsys):
    asked = kept(tmp_path, {"v1": StepAnswer.GOOD, "v2": StepAnswer.BAD, "v3": StepAnswer.UNKNOWN})
    statuses = [main(["bisect", "--step", str(tmp_path), version]) for version in ("v1", "v2", "v3")]
    assert statuses == [0, 1, 125]
    asked.build = "false"
    asked.save(tmp_path)
    assert main(["bisect", "--step", str(tmp_path), "v9"]) == 125
    for number in range(3):
        step = search.Step(f"u{number}", StepAnswer.UNKNOWN, 0.5, asked.blocks)
        asked.steps.append(step)
    asked.save(tmp_path)
    assert main(["bisect", "--step", str(tmp_path), "v3"]) == 128
    assert "too small for the noise" in capsys.readouterr().err
    kept(tmp_path, slower=1.0, blocks=6)
    assert main(["bisect", "--step", str(tmp_path), "v3"]) == 128
    assert "good and bad do not differ" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answers", "given", "end"),
    [
        ("good bad", {}, (0, "12 rounds, 4 min .* v2, with .* 99.8%")),
        ("unknown bad", {}, (1, "between v0 and v2, not closer")),
        ("", {"slower": 1.0, "blocks": 6}, (5, "6 blocks show no difference")),
    ],
)
def test_a_bisection_that_had_all_measured_says_the_answer(tmp_path, capsys, answers, given, end):
    status, told = end
    found = [StepAnswer[word.upper()] for word in answers.split()]
    kept(tmp_path, dict(zip(("v1", "v2"), found, strict=False)), count=4, **given)
    assert main(["bisect", "--resume", str(tmp_path)]) == status
    said = capsys.readouterr()
    assert re.search(told, said.out + said.err)
    assert [line.split()[0] for line in said.out.splitlines()[:-1]] == ["v1:", "v2:"][: len(found)]


@pytest.mark.parametrize(
    ("unknown", "given", "end"),
    [
        ([], {}, (0, r"the first bad commit is \w+ change 9, with a probability of 9\d\.\d%\.")),
        ([8, 9], {}, (1, r"one of these, .* no answer: .* change 9; \w+ change \d+\.")),
        (range(16), {"blocks": 3}, (1, r"not found: 3 blocks did not decide any of 14 versions")),
        (None, {"boards": ["no-such-evm"]}, (3, r"no board file no-such-evm")),
        ([], {"slower": 1.0, "blocks": 6}, (5, "there is nothing to bisect")),
    ],
)
def test_git_asks_for_the_answers_and_gets_its_checkout_back(repository, capfd, unknown, given, end):
    """`unknown` are the commits without an answer; where it is None there is no answer at all."""
    status, told = end
    versions = [gitrange.git(repository, "rev-parse", f"t{number}") for number in range(16)]
    answers = {
        version: StepAnswer.UNKNOWN
        if number in unknown
        else StepAnswer.GOOD
        if number < 9
        else StepAnswer.BAD
        for number, version in enumerate(versions[1:-1], 1)
        if unknown is not None
    }
    ends = [versions[0], versions[-1]]
    kept(repository.parent, answers, versions=ends, repository=str(repository), **given)
    assert main(["bisect", "--resume", str(repository.parent)]) == status
    assert re.search(told, "".join(capfd.readouterr()))
    assert gitrange.git(repository, "status", "--branch", "--short") == "## main"


def test_ends_that_do_not_build_leave_the_branch_checked_out(repository, tmp_path, capsys):
    what = ["--of", "git:t0..t15", "--repository", str(repository), "--metric", "a/b/c", "--what", "image:{}"]
    results = ["--results", str(tmp_path / "results")]
    assert main(["bisect", "virtual", *what, *results, "--build", "[ $(cat number) = 0 ]"]) == 4
    assert "does not build; see " in capsys.readouterr().err
    assert gitrange.git(repository, "status", "--branch", "--short") == "## main"


def test_a_bisection_that_is_ended_waits_for_its_step(repository, tmp_path):
    log = tmp_path / "log"
    step = "trap 'sleep 0.5; echo off >>%s; exit 128' TERM; echo on >>%s; sleep 600 & wait"
    good, bad = gitrange.commits(repository, "t0..t15")
    gitrange.git(repository, "bisect", "start", bad, good)

    def end():
        until(log.exists)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end, daemon=True).start()
    with Signals().watching(), pytest.raises(KeyboardInterrupt):
        gitrange.run(repository, ["sh", "-c", step % (log, log)])
    assert log.read_text().split() == ["on", "off"]
