"""A test asserts kinds, names, numbers and exit statuses; few hold a sentence, once each."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
_WORD = r"[(\"`]*[A-Za-z][\w'/.-]*[)\"`]*"
SENTENCE = re.compile(rf"(?:(?<!\S){_WORD}[,;:.]?\s+){{6,}}{_WORD}")
"""Seven words in a row."""
MOST = 20
"""Tests that may hold one: the place where a sentence itself is checked, and texts of other programs."""


def asserted(function):
    """What a test compares: its asserts, the patterns of expected errors, its table of cases."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            yield node.test
        elif isinstance(node, ast.keyword) and node.arg == "match":
            yield node.value
    for decorator in function.decorator_list:
        if "parametrize" in ast.unparse(decorator):
            yield decorator


def sentences(tree):
    """The names of tests that assert seven words in a row, with the words."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
            for part in asserted(function):
                texts = (node.value for node in ast.walk(part) if isinstance(node, ast.Constant))
                for text in filter(lambda value: isinstance(value, str), texts):
                    if found := SENTENCE.search(text.replace("\\", "")):
                        yield function.name, found[0]


def test_few_tests_assert_sentences():
    files = sorted(TESTS.rglob("test_*.py"))
    found = {
        (file.name, name): words for file in files for name, words in sentences(ast.parse(file.read_text()))
    }
    assert len(files) > 150
    assert 0 < len(found) <= MOST, found
