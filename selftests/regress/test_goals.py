"""Goals: how they are said, what a figure says of them, and where they are told."""

import json

import pytest
import yaml

from evmperf.commands.cli.main import main
from evmperf.judge import goals
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.facts import Facts
from evmperf.model.figures import Key
from evmperf.model.run import Run
from evmperf.publish.report import page
from selftests.support import runs

KEY = Key("emmc_ext4", "1048576", "write_throughput")
BOARD = "am64xx-hsevm"


def of_board(name, file=""):
    return goals.of_run(Run("r", name, "full", facts=Facts(board_file=str(file))))


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Writes the lab's file of goals."""

    def write(said):
        file = tmp_path / "goals.yaml"
        file.write_text(said if isinstance(said, str) else yaml.safe_dump(said))
        monkeypatch.setenv(goals.LAB_FILE, str(file))
        return file

    return write


@pytest.mark.parametrize(
    "name", ["emmc_ext4 1048576 write_throughput", "emmc_ext4 1 MiB write", "eMMC ext4, 1 MiB, write"]
)
def test_a_figure_has_its_ids_and_its_words(lab, name):
    lab({"*": {name: "at least 55 MB/s, owner storage team, margin 2 %"}})
    (goal,) = of_board(BOARD)
    assert goal == goals.Goal(KEY, "at least 55 MB/s", "storage team", 55.0, False, 0.02)


@pytest.mark.parametrize(
    ("text", "value", "word"),
    [
        ("at least 55 MB/s, owner a, margin 2 %", 55.0, "met"),
        ("at least 55 MB/s, owner a, margin 2 %", 54.0, "cannot tell"),
        ("at least 55 MB/s, owner a, margin 2 %", 53.0, "missed"),
        ("over 55 MB/s, owner a", 54.99, "missed"),
        ("under 55 MB/s, owner a, margin 2 %", 54.0, "met"),
        ("at most 55 MB/s, owner a, margin 2 %", 56.0, "cannot tell"),
        ("at most 55 MB/s, owner a, margin 2 %", 57.0, "missed"),
        ("at most 55 MB/s, owner a", None, "not measured"),
    ],
)
def test_what_a_figure_says_of_a_goal(lab, text, value, word):
    lab({BOARD: {"emmc_ext4 1 MiB write": text}})
    (goal,) = of_board(BOARD)
    assert goal.reached(value, "MB/s").word == word
    assert of_board("another") == []


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ("'*':\n  emmc_ext5 1 MiB write: at least 5 MB/s, owner a\n", ["line 2", "did you mean emmc_ext"]),
        ("'*':\n\n  emmc_ext4 1 MiB write: at least 5 s, owner a\n", ["line 3", "figure is MB/s"]),
        ("'*':\n  emmc_ext4 1 MiB write: fast\n", ["line 2", "a goal reads"]),
        ("'*':\n  emmc_ext4 1 MiB write: at least 5 MB/s\n", ["line 2", "owner NAME"]),
        ("- 1\n", ["must be a mapping of boards"]),
        ("goals:\n  emmc_ext4 1 MiB write: at least 5 MB/s, owner a\n", ["must be a mapping of boards"]),
        ("{", ["is not YAML"]),
    ],
)
def test_a_wrong_goal_is_named_with_file_line_and_remedy(lab, said, parts):
    file = lab(said)
    with pytest.raises(UsageError) as raised:
        of_board(BOARD)
    for part in [str(file), *parts]:
        assert part in str(raised.value)


def test_a_board_file_has_goals_and_the_labs_count_before(tmp_path, lab):
    text = (goals.boards.ENV_DIR / "virtual.yaml").read_text()
    file = tmp_path / "board.yaml"
    name = "emmc_ext4 1 MiB write"
    said = f"    options:\n      goals:\n        {name}: at least 5 MB/s, owner a\n"
    file.write_text(text.replace("    options:\n", said, 1))
    (goal,) = of_board("virtual-evm", file)
    assert (goal.key, goal.limit) == (KEY, 5.0)
    lab({"virtual-evm": {name: "at least 7 MB/s, owner lab"}})
    assert [goal.limit for goal in of_board("virtual-evm", file)] == [7.0]


@pytest.mark.parametrize(
    ("goal", "status", "word"),
    [
        ("at least 200 MB/s, owner Ada", ExitStatus.FAILED, "missed"),
        ("at least 101 MB/s, owner Ada, margin 50 %", ExitStatus.UNDECIDED, "cannot tell"),
        ("at least 50 MB/s, owner Ada", ExitStatus.OK, "met"),
    ],
)
def test_a_goal_has_its_exit_status_and_its_place_in_note_and_report(tmp_path, lab, goal, status, word):
    lab({BOARD: {"emmc_ext4 1 MiB write": goal}})
    generator = runs.history(tmp_path / "r", nights=12)
    changed = {tuple(KEY): 0.999}
    folder = runs.write(tmp_path / "r", runs.results(generator, changed=changed), number=20)
    files = [tmp_path / name for name in ("note.md", "check.json")]
    words = ["check", str(folder), "--against", "last:30", "--results", str(tmp_path / "r")]
    assert main([*words, "--markdown", str(files[0]), "--json", str(files[1])]) == status
    (found,) = json.loads(files[1].read_text())["goals"]
    assert (found["word"], found["owner"]) == (word, "Ada")
    assert f"goal {word}: eMMC ext4, 1 MiB, write" in files[0].read_text().replace("\\", "")
    text = page.render(folder)
    assert 'id="goals"' in text
    assert word in text[text.index('id="goals"') :]
    assert ("Goal missed: eMMC ext4, 1 MiB, write (owner Ada)." in text) == (word == "missed")


def test_a_goal_that_was_not_measured_is_no_success(tmp_path, lab):
    lab({BOARD: {"dhrystone cpu_clock perf": "at least 5 MHz, owner Ada"}})
    generator = runs.history(tmp_path / "r", nights=12)
    folder = runs.write(tmp_path / "r", runs.results(generator), number=20)
    words = ["check", str(folder), "--against", "last:30", "--results", str(tmp_path / "r"), "--dry-run"]
    assert main(words) == ExitStatus.UNDECIDED
