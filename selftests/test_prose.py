"""No part of evmperf reads sentences that another part wrote for people, and few tests assert one."""

import ast
import re
import re._parser as parser
from pathlib import Path

from selftests.test_layers import PLUGINS, nodes

ROOT = Path(__file__).resolve().parents[1]
FILES = [
    file
    for package in ("evmperf", *PLUGINS, "pytest_evmperf", "strategies")
    for file in (ROOT / package).rglob("*.py")
]
_REGEX = {"compile", "search", "match", "fullmatch", "findall", "finditer", "sub", "split"}
_TEXT = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition"}
_SAYS = {
    "print",
    "tell",
    "_tell",
    "_say",
    "said",
    "write_line",
    "Remark",
    "Failed",
    "Finding",
    "CheckFinding",
    "line",
}
_LETTERS = 7
"""Letters in a row that make a pattern one of words; fewer are a form such as a number's."""


def text_of(node):
    """A literal's text, an X for each value put into it; None for what is no literal."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [text_of(part) if isinstance(part, ast.Constant) else "X" for part in node.values]
        return "".join(part or "" for part in parts)
    return None


def _called(node):
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def messages(tree):
    """What a module says to people: in what it raises, prints and tells."""
    for node in tree:
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and _called(node) in _SAYS):
            texts = (text_of(part) for part in ast.walk(node))
            yield from (text for text in texts if text and " " in text.strip())


def patterns(tree):
    """What a module looks for in texts: a pattern, and the same as an expression."""
    for node in tree:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            given, regex = node.left, False
        elif isinstance(node, ast.Call) and node.args and _called(node) in _REGEX | _TEXT:
            regex = _called(node) in _REGEX and getattr(getattr(node.func, "value", None), "id", "") == "re"
            given = node.args[0]
        else:
            continue
        text = text_of(given)
        if text and (regex or (" " in text.strip() and isinstance(given, ast.Constant))):
            yield text, text if regex else re.escape(text)


def is_of_words(expression):
    """Whether an expression has letters and spaces in a row that make it one about prose."""
    try:
        codes = list(parser.parse(expression))
    except (re.error, OverflowError):
        return False
    row = "".join(chr(value) if str(code) == "LITERAL" else "\0" for code, value in codes)
    return any(sum(map(str.isalpha, run)) >= _LETTERS for run in row.split("\0"))


def readers(files=FILES, root=ROOT):
    """Each (module, pattern) that fits a sentence which another module says."""
    trees = {str(file.relative_to(root)): nodes(file) for file in files}
    said = {name: sorted(set(messages(tree))) for name, tree in trees.items()}
    found = {}
    for name, tree in trees.items():
        for shown, expression in set(patterns(tree)):
            if not is_of_words(expression):
                continue
            fits = re.compile(expression, re.MULTILINE)
            for other, sentences in said.items():
                hits = [sentence for sentence in sentences if other != name and fits.search(sentence)]
                if hits:
                    found[name, shown] = f"{other}: {hits[0]!r}"
    return found


def test_nobody_reads_sentences_that_are_for_people():
    assert readers() == {}


def test_a_reader_of_sentences_is_found(tmp_path):
    (tmp_path / "one.py").write_text('raise LabError(f"{place} was taken by {user} at noon")')
    (tmp_path / "two.py").write_text('import re\nre.search(r"was taken by (\\w+)", text)\n"x y" in text')
    (tmp_path / "three.py").write_text('if "taken by" in said:\n    said.startswith("evmperf: x")')
    files = sorted(tmp_path.glob("*.py"))
    assert {name for name, _ in readers(files, tmp_path)} == {"two.py", "three.py"}


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
    assert len(files) > 100
    assert 0 < len(found) <= MOST, found
