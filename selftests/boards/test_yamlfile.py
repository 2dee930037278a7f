"""YAML of users: what is wrong with it is said with file, line and cause."""

import pytest

from evmperf.boards import yamlfile
from evmperf.model.errors import UsageError


@pytest.mark.parametrize(
    ("text", "line", "cause"),
    [
        ("a: [1\nb: 2\n", "line 2", "expected ',' or ']'"),
        ("a: 1\na: 2\n", "line 2", "duplicate key 'a'"),
        ("a: !!python/object:os.system x\nb: [\n", "line 3", "expected the node content"),
        ("- " * 9000, "", "recursion"),
        (b"\xff\xfe\xff", "", "codec"),
        ("on: 2026-13-45", "", "month"),
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


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"no\.yaml: cannot be read"):
        yamlfile.read(tmp_path / "no.yaml")
