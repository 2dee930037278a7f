"""The governor and the CPU that system benchmarks are measured under, and what tells them apart."""

import os
import re

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.families import processor
from evmperf.benchmarks.step import Measure, Plan
from evmperf.boards import board as boards
from evmperf.measure import shellstep
from evmperf.measure.progress import StepProgress
from evmperf.model import comparable
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Reading
from selftests.support.fakes import LocalShell
from selftests.support.recordings import DATA

AM64X = boards.load(boards.ENV_DIR / "am64x.yaml")


def measure(name, label="", board=AM64X):
    """The measuring step of a row, by default the first."""
    benchmark = catalogue.benchmark(name)
    case = next(case for case in benchmark.cases("full") if label in ("", case.label))
    return next(step for step in benchmark.steps(board, case, Plan()) if isinstance(step, Measure))


@pytest.fixture
def policies(tmp_path, monkeypatch):
    """cpufreq of a board with two clusters, and a step that runs on it."""
    for name, governor in (("policy0", "ondemand"), ("policy4", "schedutil")):
        folder = tmp_path / "cpufreq" / name
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(f"{governor}\n")
    folder = tmp_path / "step"

    def run(step):
        command = step.command.replace("/sys/devices/system/cpu", str(tmp_path))
        command = command.replace(shellstep.STEP_FOLDER, str(folder))
        shell = LocalShell(tmp_path)
        shellstep.install(shell, str(folder))
        return shellstep.run(shell, command, 10, folder=str(folder)).status

    def governors():
        return [
            (tmp_path / "cpufreq" / name / "scaling_governor").read_text().strip()
            for name in ("policy0", "policy4")
        ]

    run.governors = governors
    run.file = tmp_path / "cpufreq" / "policy4" / "scaling_governor"
    return run


def test_the_governor_is_set_and_put_back_also_after_an_interrupted_run(policies):
    """What that left is not taken for the board's own."""
    for _ in range(2):
        assert policies(processor.PREPARE) == 0
        assert policies.governors() == ["performance", "performance"]
    for _ in range(2):
        assert policies(processor.PUT_BACK) == 0
        assert policies.governors() == ["ondemand", "schedutil"]


def test_a_kernel_without_the_governor_is_a_failure_and_is_put_back(policies):
    policies.file.unlink()
    policies.file.symlink_to("/dev/null")
    assert policies(processor.PREPARE) == 3
    assert policies(processor.PUT_BACK) == 0
    assert policies.governors()[0] == "ondemand"


def test_a_board_without_cpufreq_is_measured_as_it_is(tmp_path, policies):
    for file in (tmp_path / "cpufreq").glob("*/*"):
        file.unlink()
    assert policies(processor.PREPARE) == policies(processor.PUT_BACK) == 0


def test_what_runs_pinned_may_use_one_cpu_only(tmp_path):
    shell = LocalShell(tmp_path)
    text = shell.run(processor.pinned("sh -c 'grep Cpus_allowed_list /proc/self/status'"), 10).text
    assert re.fullmatch(r"Cpus_allowed_list:\s+0\s*", text)
    assert 0 in os.sched_getaffinity(0)


@pytest.mark.parametrize("name", ["dhrystone", "whetstone", "linpack", "nbench", "stream"])
def test_single_threaded_programs_are_pinned_under_the_performance_governor(name):
    benchmark = catalogue.benchmark(name)
    case = benchmark.cases("full")[0]
    before, step, after = benchmark.steps(AM64X, case, Plan())
    assert (before, after) == (processor.PREPARE, processor.PUT_BACK)
    assert "taskset -c 0 " in step.command
    assert benchmark.conditions(AM64X)["variant"].startswith("CPU 0, performance governor")


def test_linpack_of_the_other_precision_is_refused_or_another_variant(tmp_path):
    double = {"linpack.txt": (DATA / "linpack" / "double.txt").read_text()}
    with pytest.raises(RefusedOutput, match=r"options\.system\.linpack_precision"):
        measure("linpack").parse(double)
    file = tmp_path / "am64x.yaml"
    text = (boards.ENV_DIR / "am64x.yaml").read_text()
    added = text.replace("    options:\n", "    options:\n      system: {linpack_precision: double}\n", 1)
    file.write_text(added)
    other = boards.load(file)
    assert measure("linpack", board=other).parse(double) == [Reading("perf", 482759.0)]
    assert len({catalogue.benchmark("linpack").conditions(board)["variant"] for board in (other, AM64X)}) == 2


def test_an_uncertain_kernel_is_kept_and_marked():
    outputs = {"nbench.txt": (DATA / "nbench" / "uncertain.txt").read_text()}
    marks = {}
    for case in catalogue.benchmark("nbench").cases("full"):
        (reading,) = measure("nbench", case.label).parse(outputs)
        marks[case.label] = reading.mark
    uncertain = [label for label, mark in marks.items() if mark]
    assert uncertain == ["fourier", "lu_decomposition"]
    assert marks["fourier"] == "not 95 % certain, says NBench"


def test_a_score_without_a_scene_is_another_variant_and_software_is_for_boards_that_say_so():
    def parse(board, name):
        outputs = {"glmark2.txt": (DATA / "glmark2" / f"{name}.txt").read_text()}
        return measure("glmark2", board=board).parse(outputs)[0]

    assert parse(AM64X, "all-scenes").variant == ""
    assert parse(AM64X, "no-terrain").variant == "without terrain"
    assert parse(AM64X, "bounded").variant == "bounded by the display's refresh"
    with pytest.raises(RefusedOutput, match="draws on the CPU"):
        parse(AM64X, "software-virgl")
    virtual = boards.load(boards.ENV_DIR / "virtual-media.yaml")
    assert parse(virtual, "software-virgl").variant == "drawn by the CPU"


def test_coremark_pro_has_the_digits_of_its_log_and_says_when_it_has_not():
    folder = DATA / "coremark_pro"
    text, log = ((folder / f"two-contexts{end}").read_text() for end in (".txt", ".log.txt"))
    parse = measure("coremarkpro", "core").parse
    (precise,) = parse({"coremark-pro.txt": text, "certificate.log": log})
    (printed,) = parse({"coremark-pro.txt": text})
    assert (f"{precise.value:.6g}", precise.variant) == ("0.350018", "")
    assert (printed.value, printed.variant) == (0.35, "two decimals: no log in builds/*/*/cert")


def test_variants_and_marks_go_into_the_conditions_and_variants_are_not_compared():
    benchmark = catalogue.benchmark("glmark2")
    case = benchmark.cases("full")[0]
    progress = StepProgress(benchmark, case, Plan(), conditions={"variant": "first"})
    for _ in range(2):
        progress.add([Reading("score", 87.0, variant="without terrain", mark="odd")], 0, 1)
    assert progress.conditions == {"variant": "first; without terrain", "marks": "odd"}
    facets = {"variant": "first"}, {"variant": "first; without terrain"}
    assert "(first, not first; without terrain)" in comparable.difference(*facets)
