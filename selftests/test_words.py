"""The words: a glossary with docstrings, one class a name, and pages that lead somewhere."""

import ast
import collections
import importlib
import inspect
import re
from pathlib import Path

import pytest

from selftests.test_layers import PLUGINS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
GROUPS = ["Tutorial and how-to", "Reference", "Explanation"]

GLOSSARY = re.findall(
    r"^\| (\w+) \| (.+) \| `(evmperf\.[\w.]+)` \|$", (DOCS / "data-model.md").read_text(), re.M
)


@pytest.mark.parametrize(("word", "sentence", "path"), GLOSSARY)
def test_the_glossary_has_the_docstrings(word, sentence, path):
    """A word is explained by the first sentence of its class."""
    module, _, name = path.rpartition(".")
    said = inspect.getdoc(getattr(importlib.import_module(module), name))
    assert re.split(r"(?<=\.)\s", " ".join(said.split()))[0] == sentence


def test_no_class_has_the_name_of_another():
    found = collections.Counter(
        node.name
        for folder in ("evmperf", *PLUGINS)
        for file in (ROOT / folder).rglob("*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in found.items() if count > 1] == []


def test_every_page_stands_in_one_group_of_the_index():
    index = (DOCS / "README.md").read_text()
    assert re.findall("^## (.+)$", index, re.MULTILINE) == GROUPS
    named = re.findall(r"^\* \[(.+)\]\(\1\.md\): ", index, re.MULTILINE)
    assert sorted(named) == sorted(file.stem for file in DOCS.glob("*.md") if file.stem != "README")


def anchors(page):
    return {
        re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-")
        for title in re.findall("^#+ (.+)$", page, re.MULTILINE)
    }


PAGES = ["README.md", *sorted(f"docs/{file.name}" for file in DOCS.glob("*.md"))]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", (ROOT / page).read_text())
    for path, anchor in links:
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), path
        if anchor:
            assert anchor.rstrip("-") in {a.rstrip("-") for a in anchors(target.read_text())}
