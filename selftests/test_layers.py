"""The layers of DESIGN.md, read from the imports."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("evmperf", "pytest_evmperf", "strategies", "tests", "selftests")
IMPURE = {"subprocess", "socket", "os", "time", "random", "requests", "threading", "shutil"}


def imports(file):
    """Full names of everything a module imports, wherever in it and however it says so."""
    package = file.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(ast.parse(file.read_text(), str(file))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: -node.level]) if node.level else []
            base += node.module.split(".") if node.module else []
            yield ".".join(base)
            yield from (".".join([*base, alias.name]) for alias in node.names)
        elif isinstance(node, ast.Call) and _name(node.func) in ("import_module", "__import__"):
            yield from (a.value for a in node.args if isinstance(a, ast.Constant))


def _name(function):
    return getattr(function, "attr", getattr(function, "id", ""))


def offenders(folder, forbidden, but=()):
    """`file imports name` for each import below a forbidden package."""
    files = sorted((ROOT / folder).rglob("*.py")) if (ROOT / folder).is_dir() else [ROOT / folder]
    assert files, f"{folder} has no modules: this test looks in the wrong place"
    return [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in files
        if not any(file.is_relative_to(ROOT / exception) for exception in but)
        for name in imports(file)
        if name.split(".")[0] in forbidden or name in forbidden
    ]


def test_evmperf_never_imports_pytest():
    assert offenders("evmperf", {"pytest", "_pytest", "pytest_evmperf", "pytest_html"}) == []


def test_only_the_lab_package_knows_labgrid():
    assert offenders("evmperf", {"labgrid"}, but=["evmperf/lab"]) == []
    assert offenders("pytest_evmperf", {"labgrid"}) == []


def test_strategies_know_nothing_of_evmperf():
    assert offenders("strategies", {"evmperf", "pytest_evmperf", "pytest", "selftests"}) == []


def test_hardware_tests_hold_declarations_only():
    assert offenders("tests", {"evmperf", "pytest_evmperf", "labgrid", "selftests"}) == []


@pytest.mark.parametrize("folder", PACKAGES)
def test_nothing_imports_conftest(folder):
    found = [n for file in (ROOT / folder).rglob("*.py") for n in imports(file)]
    assert [name for name in found if "conftest" in name.split(".")] == []


@pytest.mark.parametrize("folder", ["evmperf/tools", "evmperf/benchmarks"])
def test_tools_and_benchmarks_are_pure(folder):
    assert offenders(folder, IMPURE) == []


@pytest.mark.parametrize(
    "module",
    [
        "storage", "audio.py", "gadget.py", "openssl_speed.py", "lowpower.py",
        "flash.py", "system.py", "boot.py", "stats.py", "units.py", "model.py", "benchmark.py",
    ],
)  # fmt: skip
def test_what_benchmarks_are_made_of_is_pure(module):
    assert offenders(f"evmperf/{module}", IMPURE) == []


@pytest.mark.parametrize("module", ["runner.py", "spool.py", "lab", "tools", "benchmarks"])
def test_what_measures_knows_nothing_of_sinks(module):
    sinks = {"evmperf.influx", "evmperf.report", "evmperf.grafana", "evmperf.runs.history"}
    assert offenders(f"evmperf/{module}", sinks) == []


def test_nothing_in_the_package_knows_its_selftests():
    assert offenders("evmperf", {"selftests", "tests"}) == []
    assert offenders("pytest_evmperf", {"selftests", "tests"}) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import labgrid.driver as d", "labgrid.driver"),
        ("def f():\n    from labgrid import step", "labgrid.step"),
        ("import importlib\nimportlib.import_module('labgrid')", "labgrid"),
        ("if True:\n    import os, labgrid", "labgrid"),
    ],
)
def test_an_import_is_seen_wherever_it_hides(monkeypatch, tmp_path, text, name):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "module.py").write_text(text)
    assert f"module.py imports {name}" in offenders("module.py", {"labgrid"})
