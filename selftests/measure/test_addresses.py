"""Where a run says it can be looked at later."""

from evmperf.measure.provenance import addresses
from evmperf.model.run import Run

JOB = "https://gitlab.lab/lab/evmperf/-/jobs/7"
GITLAB = {"CI_JOB_URL": JOB, "CI_PIPELINE_URL": "https://gitlab.lab/lab/evmperf/-/pipelines/3"}


def test_at_a_desk_a_run_has_no_address(tmp_path):
    assert addresses(tmp_path / "results", {}) == {}
    assert Run("id", "board", "full").report == ""


def test_a_job_serves_its_artifacts(tmp_path):
    found = addresses(tmp_path / "results", {**GITLAB, "CI_PROJECT_DIR": str(tmp_path)})
    assert found["job"] == JOB
    assert found["pipeline"] == GITLAB["CI_PIPELINE_URL"]
    run = Run("am64x-1", "am64x", "full", addresses=found)
    assert run.report == f"{JOB}/artifacts/file/results/am64x-1/report.html"


def test_results_elsewhere_are_no_artifacts(tmp_path):
    given = {**GITLAB, "CI_PROJECT_DIR": str(tmp_path / "project")}
    assert set(addresses(tmp_path / "results", given)) == {"job", "pipeline"}


def test_a_lab_that_serves_its_results_says_so(tmp_path):
    given = {**GITLAB, "CI_PROJECT_DIR": str(tmp_path), "EVMPERF_RESULTS_URL": "https://lab/results/"}
    run = Run("am64x-1", "am64x", "full", addresses=addresses(tmp_path / "results", given))
    assert run.report == "https://lab/results/am64x-1/report.html"
