"""YAML of users that is no text of theirs; mistakes in it are selftests/cli/refused.yaml's."""

import os

import pytest
from evmperf_guides import importer

from evmperf.boards import yamlfile
from evmperf.model.errors import UsageError


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("a: b\n" * 2_000_000, r"large\.yaml: is larger than 0\.25 MiB"),
        ("- " * 9000, r"large\.yaml.*recursion"),
    ],
    ids=["large", "deep"],
)
def test_a_large_or_deep_file_is_refused(tmp_path, text, cause):
    file = tmp_path / "large.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match=cause):
        yamlfile.read(file)


def test_a_pipe_is_not_waited_for(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (yamlfile.read, importer.load):
        with pytest.raises(UsageError, match="pipe: is no regular file"):
            read(pipe)
