"""Shell texts of files: lines become one, values and other texts are put in, nothing is put in twice."""

import pytest

from evmperf.model.shelltext import ShellTexts

TEXTS = """\
#: first
# For readers only.
if [ $# = 1 ]; then
  echo "@name" "$@@";
fi;

#: second
@first; cd @{place}x
"""


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "module.sh").write_text(TEXTS)
    return ShellTexts(str(tmp_path / "module.py"))


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("first", {"name": "a b"}, 'if [ $# = 1 ]; then echo "a b" "$@"; fi'),
        ("second", {"name": "n", "place": "/"}, 'if [ $# = 1 ]; then echo "n" "$@"; fi; cd /x'),
        ("second", {"first": ":", "place": "@name"}, ":; cd @namex"),
    ],
)
def test_a_text_is_one_line_with_its_values_and_other_texts_of_its_file(texts, name, given, text):
    assert texts(name, **given) == text


def test_a_value_that_is_missing_is_an_error(texts):
    with pytest.raises(KeyError, match="name"):
        texts("first")
