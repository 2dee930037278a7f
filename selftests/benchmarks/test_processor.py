"""The governor and the CPU that system benchmarks are measured under, and what tells them apart."""

import os
import re

import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.families import processor
from evmperf.benchmarks.step import Plan
from evmperf.boards import board as boards
from evmperf.measure import shellstep
from evmperf.measure.progress import StepProgress
from evmperf.model import comparable
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Reading
from selftests.support.fakes import LocalShell
from selftests.support.recordings import DATA
from selftests.support.steps import AM64X, step_of


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
    double = {"linpack.txt": read("linpack/double.txt")}
    with pytest.raises(RefusedOutput, match=r"options\.system\.linpack_precision"):
        step_of("linpack").parse(double)
    file = tmp_path / "am64x.yaml"
    text = (boards.ENV_DIR / "am64x.yaml").read_text()
    added = text.replace("    options:\n", "    options:\n      system: {linpack_precision: double}\n", 1)
    file.write_text(added)
    other = boards.load(file)
    assert step_of("linpack", board=other).parse(double) == [Reading("perf", 482759.0)]
    assert len({catalogue.benchmark("linpack").conditions(board)["variant"] for board in (other, AM64X)}) == 2


def read(path):
    return (DATA / path).read_text()


GPU = {name: {"glmark2.txt": read(f"glmark2/{name}.txt")} for name in ("all-scenes", "no-terrain", "bounded")}
SOFTWARE = {"glmark2.txt": read("glmark2/software-virgl.txt")}
NBENCH = {"nbench.txt": read("nbench/uncertain.txt")}
PRINTED = {"coremark-pro.txt": read("coremark_pro/two-contexts.txt")}
LOGGED = PRINTED | {"certificate.log": read("coremark_pro/two-contexts.log.txt")}


@pytest.mark.parametrize(
    ("name", "label", "outputs", "variant", "mark"),
    [
        ("nbench", "fourier", NBENCH, "", "not 95 % certain, says NBench"),
        ("nbench", "idea", NBENCH, "", ""),
        ("glmark2", "", GPU["all-scenes"], "", ""),
        ("glmark2", "", GPU["no-terrain"], "without terrain", ""),
        ("glmark2", "", GPU["bounded"], "bounded by the display's refresh", ""),
        ("coremarkpro", "core", LOGGED, "", ""),  # with the digits of its log
        ("coremarkpro", "core", PRINTED, "two decimals: no log in builds/*/*/cert", ""),
    ],
)
def test_what_a_program_says_beside_its_figure_is_kept_with_it(*, name, label, outputs, variant, mark):
    (reading,) = step_of(name, label, profile="full").parse(outputs)
    assert (reading.variant, reading.mark) == (variant, mark)


def test_what_is_drawn_by_the_cpu_is_for_boards_that_say_so():
    with pytest.raises(RefusedOutput, match="draws on the CPU"):
        step_of("glmark2", profile="full").parse(SOFTWARE)
    virtual = boards.load(boards.ENV_DIR / "virtual-media.yaml")
    assert step_of("glmark2", profile="full", board=virtual).parse(SOFTWARE)[0].variant == "drawn by the CPU"


def test_variants_and_marks_go_into_the_conditions_and_variants_are_not_compared():
    benchmark = catalogue.benchmark("glmark2")
    case = benchmark.cases("full")[0]
    progress = StepProgress(benchmark, case, Plan(), conditions={"variant": "first"})
    for _ in range(2):
        progress.add([Reading("score", 87.0, variant="without terrain", mark="odd")], 0, 1)
    assert progress.conditions == {"variant": "first; without terrain", "marks": "odd"}
    facets = {"variant": "first"}, {"variant": "first; without terrain"}
    assert "(first, not first; without terrain)" in comparable.difference(*facets)
