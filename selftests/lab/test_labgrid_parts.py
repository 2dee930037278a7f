"""What of Labgrid is used that its documentation does not promise: docs/limits.md names it."""

import ast
import importlib
import inspect
import re

from selftests.test_layers import ROOT, imports, modules, nodes

DISTRICTS = ("evmperf", "pytest_evmperf", "strategies", "virtual-evm/evmperf_virtual")
SESSION = re.compile(r"labgrid\.(remote|resource\.remote)\b.*")
HOOKS = {"_read", "_write"}
"""What Labgrid's ConsoleExpectMixin asks of who uses it."""


def inner_names(file):
    """`Class.name` of each name with an underscore that a module's class shares with Labgrid's above it."""
    for node in nodes(file):
        if not isinstance(node, ast.ClassDef) or file.parts[-3:-1] != ("evmperf", "lab"):
            continue
        kind = getattr(importlib.import_module(f"evmperf.lab.{file.stem}"), node.name)
        used = {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}
        used |= {inner.name for inner in node.body if isinstance(inner, ast.FunctionDef)}
        for base in kind.__mro__:
            if base.__module__.startswith("labgrid."):
                theirs = re.findall(r"(?:self\.|def )(_[a-z]\w*)", inspect.getsource(base))
                yield from (f"{base.__name__}.{name}" for name in used & {*theirs} - HOOKS)
                used -= {*theirs}


def test_three_parts_are_used_that_labgrids_documentation_does_not_promise():
    found = set()
    for file in (file for district in DISTRICTS for file in modules(district)):
        for name in imports(file):
            if SESSION.fullmatch(name):
                found.add("client session")
            elif name.startswith("labgrid.pytestplugin") or re.search(r"^labgrid\b.*\._[a-z]", name):
                found.add(name)
        found |= set(inner_names(file))
        for node in nodes(file):  # of another object: nothing of evmperf's is asked for so
            text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
            if re.search(r"\b(driver|manager|session|environment|target|resource)\._[a-z]\w*$", text):
                found.add("client session" if text == "manager._start" else text)
    assert found - {"labgrid.pytestplugin.hooks"} == {
        "client session",
        "labgrid.pytestplugin.hooks.LABGRID_ENV_KEY",
        *(f"ShellDriver.{name}" for name in ("_run", "_await_login", "_inject_run", "_status")),
    }
    stated = (ROOT / "docs/limits.md").read_text()
    assert "Three parts of Labgrid" in stated
    for word in ("client session", "LABGRID_ENV_KEY", "`ShellDriver`"):
        assert word in stated
