"""The house: which room may import which, read from the imports."""

import ast
import functools
import itertools
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PLUGINS = ("virtual-evm/evmperf_virtual", "guide-reader/evmperf_guides")
PACKAGES = ("evmperf", *PLUGINS, "pytest_evmperf", "strategies", "tests", "selftests")

PAGE = (ROOT / "docs/architecture.md").read_text()
DISTRICTS = {
    district: set(allowed.replace("nothing", "").split())
    for district, allowed in re.findall(r"^\| `(\w+)` \| .+ \| (.+) \|$", PAGE, re.MULTILINE)
}
"""Which districts each may import, as its table says; `all` may be. Lazy and type-only imports count."""
DOORS = yaml.safe_load(Path(__file__).with_name("doors.yaml").read_text())

MEASURING = ("evmperf/model/replies.py",)
"""What names the process that measures, which is a pytest."""

PURE = ("model", "boards/*.py", "benchmarks", "measure/state")
"""Places that compute the same whenever and wherever they are called."""
IMPURE = {"subprocess", "socket", "time", "random", "secrets", "requests", "threading", "shutil"}
ANYWHERE = {"__init__", "__main__"}
"""Modules that may stand at the top of evmperf."""
LABGRID = ("lab",)
"""Districts that know Labgrid."""


@functools.cache
def nodes(file):
    """The syntax of a module, flat."""
    return tuple(ast.walk(ast.parse(file.read_text(), str(file))))


def imports(file):
    """Full names of everything a module imports or starts as a process, however it says so."""
    package = file.relative_to(ROOT).with_suffix("").parts
    for node in nodes(file):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: -node.level]) if node.level else []
            base += node.module.split(".") if node.module else []
            yield ".".join(base)
            yield from (".".join([*base, alias.name]) for alias in node.names)
        elif isinstance(node, ast.Call) and _name(node.func) in ("import_module", "__import__"):
            yield from (a.value for a in node.args if isinstance(a, ast.Constant))
        elif isinstance(node, ast.List | ast.Tuple):
            words = [getattr(word, "value", None) for word in node.elts]
            pairs = itertools.pairwise(words)
            yield from (b for a, b in pairs if a == "-m" and isinstance(b, str))


def _name(function):
    return getattr(function, "attr", getattr(function, "id", ""))


def modules(folder):
    """The modules below a folder (or the one file)."""
    files = sorted((ROOT / folder).rglob("*.py")) if (ROOT / folder).is_dir() else [ROOT / folder]
    assert files, f"{folder} has no modules: this test looks in the wrong place"
    return files


def offenders(folder, forbidden, but=()):
    """`file imports name` for each import below a forbidden package."""
    return [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in modules(folder)
        if not any(file.is_relative_to(ROOT / exception) for exception in but)
        for name in imports(file)
        if name.split(".")[0] in forbidden or name in forbidden
    ]


def districts_imported(file):
    """The districts that a module of evmperf imports from."""
    found = {name.split(".")[1] for name in imports(file) if name.startswith("evmperf.")}
    return found - {"__version__"}


def module_graph():
    """Module to the modules of evmperf that it imports."""
    names = {
        ".".join(file.relative_to(above).with_suffix("").parts).removesuffix(".__init__"): file
        for above, name in (
            ((ROOT / package).parent, Path(package).name) for package in ("evmperf", *PLUGINS)
        )
        for file in modules(above / name)
    }
    graph = {}
    for module, file in names.items():
        found = {name for name in imports(file) if name in names and name != module}
        # `from package import module` is an import of the module alone.
        graph[module] = {
            name
            for name in found
            if names[name].name != "__init__.py" or not any(o.startswith(f"{name}.") for o in found)
        }
    return graph


def drawing():
    """The districts below each other, and the arrows between them: a mark where the left one imports."""
    width = max(map(len, DISTRICTS))
    rows = [" " * (width + 2) + " ".join(f"{name:>{max(len(name), 5)}}" for name in DISTRICTS)]
    for district in DISTRICTS:
        found = {name for file in modules(f"evmperf/{district}") for name in districts_imported(file)}
        marks = ("." if name == district else "x" if name in found else "" for name in DISTRICTS)
        cells = (f"{mark:>{max(len(name), 5)}}" for name, mark in zip(DISTRICTS, marks, strict=True))
        rows.append(f"{district:<{width}}   {' '.join(cells)}".rstrip())
    return "\n".join(rows)


def test_the_page_on_architecture_has_the_drawing():
    assert drawing() in PAGE, drawing()


def test_every_module_has_a_district():
    top = {path.name.removesuffix(".py") for path in (ROOT / "evmperf").iterdir()}
    assert top - ANYWHERE - {"__pycache__", "py.typed"} == set(DISTRICTS)


@pytest.mark.parametrize("district", DISTRICTS)
def test_a_district_imports_what_the_table_allows_and_uses_it(district):
    allowed = DISTRICTS[district]
    found = {
        name: str(file.relative_to(ROOT))
        for file in modules(f"evmperf/{district}")
        for name in districts_imported(file) - {district}
    }
    if "all" not in allowed:
        assert {name: file for name, file in found.items() if name not in allowed} == {}
        assert allowed - set(found) == set()


def test_the_table_has_no_circle():
    order = list(DISTRICTS)
    for district, allowed in DISTRICTS.items():
        assert allowed - {"all"} <= set(order[: order.index(district)])


def test_districts_are_entered_by_their_doors():
    entered = {district: set() for district in DOORS}
    for module, imported in module_graph().items():
        for other in imported:
            _, district, *rest = [*other.split("."), ""]
            if district in DOORS and not module.startswith(f"evmperf.{district}"):
                entered[district].add(".".join(rest).rstrip("."))
    assert {name: " ".join(sorted(found)) for name, found in entered.items()} == {
        name: " ".join(sorted(doors)) for name, doors in DOORS.items()
    }


def test_no_modules_import_each_other_in_a_circle():
    graph = module_graph()
    done = set()

    def visit(module, path):
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module not in done:
            for other in sorted(graph[module]):
                visit(other, [*path, module])
            done.add(module)

    for module in sorted(graph):
        visit(module, [])


def test_evmperf_never_imports_pytest():
    assert offenders("evmperf", {"pytest", "_pytest", "pytest_evmperf", "pytest_html"}, MEASURING) == []


def test_only_the_lab_knows_labgrid():
    assert offenders("evmperf", {"labgrid"}, but=[f"evmperf/{room}" for room in LABGRID]) == []
    assert offenders("pytest_evmperf", {"labgrid"}) == []


STRATEGY = ("evmperf/lab/strategy.py", "evmperf/lab/bootoptions.py")


@pytest.mark.parametrize("module", STRATEGY)
def test_the_strategy_knows_nothing_of_evmperf_but_the_console(module):
    assert districts_imported(ROOT / module) <= {"boards", "model", "lab"}
    ours = {n for n in imports(ROOT / module) if n.startswith("evmperf.lab.")}
    assert {name.split(".")[2] for name in ours} <= {"bootoptions"}


def test_strategies_by_path_are_names_for_evmperfs():
    found = {name for file in modules("strategies") for name in imports(file)}
    assert {name for name in found if not name.startswith("evmperf.lab.strategy")} == set()


def test_hardware_tests_hold_declarations_only():
    assert offenders("tests", {"evmperf", "pytest_evmperf", "labgrid", "selftests"}) == []


@pytest.mark.parametrize("folder", PACKAGES)
def test_nothing_imports_conftest(folder):
    files = [file for file in (ROOT / folder).rglob("*.py") if "conftest" in file.read_text()]
    found = [name for file in files for name in imports(file)]
    assert [name for name in found if "conftest" in name.split(".")] == []


@pytest.mark.parametrize("place", PURE)
def test_pure_places_compute_only(place):
    files = [file for file in (ROOT / "evmperf").glob(place) if file.is_file()] or modules(f"evmperf/{place}")
    assert [name for file in files for name in offenders(str(file.relative_to(ROOT)), IMPURE)] == []
    reads = [
        f"{file.relative_to(ROOT)} line {node.lineno}"
        for file in files
        for node in nodes(file)
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
    ]
    assert reads == []


def test_modules_are_loaded_by_name_in_one_place_only():
    found = [
        str(file.relative_to(ROOT))
        for file in modules("evmperf")
        for node in nodes(file)
        if isinstance(node, ast.Call) and _name(node.func) in ("import_module", "__import__")
    ]
    # A catalogue discovers; the command line loads the module of the command that was typed.
    assert found == ["evmperf/benchmarks/catalogue.py", "evmperf/commands/cli/main.py"]


def test_nothing_in_the_package_knows_its_selftests_and_plugins():
    assert offenders("evmperf", {"selftests", "tests", "evmperf_virtual", "evmperf_guides"}) == []
    assert offenders("pytest_evmperf", {"selftests", "tests"}) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import labgrid.driver as d", "labgrid.driver"),
        ("def f():\n    from labgrid import step", "labgrid.step"),
        ("import importlib\nimportlib.import_module('labgrid')", "labgrid"),
        ("if True:\n    import os, labgrid", "labgrid"),
        ("run([sys.executable, '-m', 'labgrid.remote.client'])", "labgrid.remote.client"),
    ],
)
def test_an_import_is_seen_wherever_it_hides(monkeypatch, tmp_path, text, name):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "module.py").write_text(text)
    assert f"module.py imports {name}" in offenders("module.py", {"labgrid"})


if __name__ == "__main__":
    print(drawing())
