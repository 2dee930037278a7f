"""The house: which room may import which, read from the imports."""

import ast
import functools
import itertools
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("evmperf", "pytest_evmperf", "strategies", "tests", "selftests")

ROOMS = {
    # room: what it is | which rooms it may import
    "model": ("the words as data: records, units, errors, statistics, what is comparable", ""),
    "pages": ("the look of every page: style sheet, base, plots, names of cases", "model"),
    "boards": ("board files, typed; their vocabulary; where they are looked for", "model"),
    "tools": ("one module a tool: command line and parser", "model"),
    "console": ("the console as a record: stamps, marks, watch, one boot", "model"),
    "runs": ("the spool on disk; earlier runs, wherever they are kept", "console model"),
    "store": ("the analytical store: runs of all labs as columns", "runs console model"),
    "benchmarks": (
        "what a benchmark is, the catalogue, families of tables, one module a table",
        "boards tools console model",
    ),
    "state": (
        "what a board is doing around a case, what spoils a figure, limits of buses",
        "benchmarks boards tools model",
    ),
    "measure": (
        "what a benchmark may touch, the runner, a step on the board, facts",
        "state benchmarks boards tools console runs model",
    ),
    "keeping": ("who holds which board: the keeper of a host, and Labgrid's places", "boards model"),
    "virtual": ("what virtual EVMs are made of, and the virtual lab", "boards runs model"),
    "lab": (
        "Labgrid's side: console, shell, power, tester, meter, media",
        "measure benchmarks boards tools console runs model",
    ),
    "provision": (
        "images: reading, checking, putting on the board, identifying what booted",
        "lab measure benchmarks boards tools console runs model",
    ),
    "published": (
        "tables of published guides, dialects, artefacts, releases, published figures",
        "state benchmarks boards tools console runs model",
    ),
    "guide": (
        "reading guides, and writing the next",
        "published pages benchmarks boards tools console runs model",
    ),
    "regress": (
        "judging runs, and goals; A/B and bisection",
        "published measure benchmarks boards tools console runs model",
    ),
    "report": (
        "terminal tables, the report of a run",
        "published state pages benchmarks boards tools console runs model",
    ),
    "site": (
        "the site of trends: static pages from runs",
        "regress published measure state pages benchmarks boards tools console store runs model",
    ),
    "influx": ("the way to the database and back", "runs benchmarks model"),
    "grafana": ("dashboards and alerts from the catalogue", "runs benchmarks boards model"),
    "lava": (
        "LAVA jobs, their import, a LAVA of one's own",
        "measure benchmarks boards tools console runs virtual model",
    ),
    "desk": (
        "finding the board on a desk: serial ports, SSH, what it is and its file",
        "lab measure benchmarks boards tools console runs model",
    ),
    "doctor": (
        "the checks of day one: the lab and the board, step by step",
        "lab keeping influx measure state benchmarks boards tools console runs virtual model",
    ),
    "app": (
        "use cases: typed requests to typed replies, and the processes that work on them",
        "doctor desk lava site report influx guide regress keeping provision published lab measure state "
        "benchmarks boards console store runs virtual model",
    ),
    "night": (
        "many boards side by side: plan, journal, health of boards, status, the night's page",
        "app lava keeping pages measure runs benchmarks boards model",
    ),
    "gitlab": ("pipelines and notes", "night measure pages benchmarks boards runs model"),
    "cli": ("every subcommand's arguments, loaded when called", "*"),
}
"""docs/architecture.md shows this table. Lazy and type-only imports count."""

MEASURING = ("evmperf/model/replies.py",)
"""What names the process that measures, which is a pytest."""

PURE = ("model", "boards", "tools", "benchmarks", "state")
"""Rooms that compute the same whenever and wherever they are called."""
IMPURE = {"subprocess", "socket", "time", "random", "secrets", "requests", "threading", "shutil"}
ANYWHERE = {"__init__", "__main__"}
"""Modules that may stand at the top of evmperf."""
LABGRID = ("lab", "provision", "keeping", "doctor")
"""Rooms that know Labgrid."""


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


def rooms_imported(file):
    """The rooms that a module of evmperf imports from."""
    rooms = {name.split(".")[1] for name in imports(file) if name.startswith("evmperf.")}
    return rooms - {"__version__"}


def module_graph():
    """Module to the modules of evmperf that it imports."""
    names = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
        for file in modules("evmperf")
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


def test_the_page_on_architecture_has_this_table():
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = [
        f"| `{room}` | {what} | {allowed.replace('*', 'all rooms') or 'nothing'} |"
        for room, (what, allowed) in ROOMS.items()
    ]
    assert [row for row in rows if row not in page] == []


def test_every_module_has_a_room():
    top = {path.name.removesuffix(".py") for path in (ROOT / "evmperf").iterdir()}
    assert top - ANYWHERE - {"__pycache__", "py.typed"} <= set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_what_the_table_allows(room):
    allowed = set(ROOMS[room][1].split()) | {room}
    if "*" in allowed or not (ROOT / "evmperf" / room).is_dir():
        return
    assert [
        f"{file.relative_to(ROOT)} imports {', '.join(sorted(rooms_imported(file) - allowed))}"
        for file in modules(f"evmperf/{room}")
        if rooms_imported(file) - allowed
    ] == []


def test_the_table_has_no_circle():
    order = list(ROOMS)
    for room, (_, allowed) in ROOMS.items():
        assert all(order.index(other) < order.index(room) for other in allowed.split("*")[0].split())


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
    assert rooms_imported(ROOT / module) <= {"console", "boards", "model", "lab"}
    ours = {n for n in imports(ROOT / module) if n.startswith("evmperf.lab.")}
    assert {name.split(".")[2] for name in ours} <= {"bootoptions"}


def test_strategies_by_path_are_names_for_evmperfs():
    found = {name for file in modules("strategies") for name in imports(file)}
    assert {name for name in found if not name.startswith("evmperf.lab.strategy")} == set()


def test_hardware_tests_hold_declarations_only():
    assert offenders("tests", {"evmperf", "pytest_evmperf", "labgrid", "selftests"}) == []


@pytest.mark.parametrize("folder", PACKAGES)
def test_nothing_imports_conftest(folder):
    found = [n for file in (ROOT / folder).rglob("*.py") for n in imports(file)]
    assert [name for name in found if "conftest" in name.split(".")] == []


@pytest.mark.parametrize("room", PURE)
def test_pure_rooms_compute_only(room):
    assert offenders(f"evmperf/{room}", IMPURE) == []
    reads = [
        f"{file.relative_to(ROOT)} line {node.lineno}"
        for file in modules(f"evmperf/{room}")
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
    assert found == ["evmperf/benchmarks/catalogue.py", "evmperf/cli/main.py"]


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
        ("run([sys.executable, '-m', 'labgrid.remote.client'])", "labgrid.remote.client"),
    ],
)
def test_an_import_is_seen_wherever_it_hides(monkeypatch, tmp_path, text, name):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    (tmp_path / "module.py").write_text(text)
    assert f"module.py imports {name}" in offenders("module.py", {"labgrid"})
