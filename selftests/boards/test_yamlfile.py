"""YAML of users: what is wrong with it is said with file, line and cause."""

import os
from itertools import pairwise

import pytest
from evmperf_guides import importer

from evmperf.boards import yamlfile
from evmperf.model.errors import UsageError


@pytest.mark.parametrize(
    ("text", "line", "cause"),
    [
        ("a: [1\nb: 2\n", "line 2", "expected ',' or ']'"),
        ("a: 1\na: 2\n", "line 2", "duplicate key 'a'"),
        ("a: !!python/object:os.system x\nb: [\n", "line 3", "expected the node content"),
        ("- " * 9000, "", "recursion"),
        (b"\xff\xfe\xff", "line 1", "UTF-8"),
        ("on: 2026-13-45", "", "month"),
        ("a: &a [*a]", "", "recursion"),
        (
            "a: &a [x, x]\n"
            + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefgh")),
            "",
            "aliases",
        ),
    ],
)
def test_a_mistake_has_file_line_and_cause(tmp_path, text, line, cause):
    file = tmp_path / "plan.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError) as refused:
        yamlfile.read(file)
    said = str(refused.value)
    assert said.startswith(f"{file} {line}".rstrip())
    assert cause in said


def test_a_pipe_and_a_large_file_are_not_waited_for(tmp_path):
    file = tmp_path / "large.yaml"
    file.write_text("a: b\n" * 2_000_000)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (yamlfile.read, importer.load):
        with pytest.raises(UsageError, match="pipe: is no regular file"):
            read(pipe)
    with pytest.raises(UsageError, match=r"large\.yaml: is larger than 0\.25 MiB"):
        yamlfile.read(file)
