"""The commands of a page are read as a reader reads them."""

import argparse
from pathlib import Path

import pytest

from tests.support import documentation
from tests.support.documentation import Step, says, steps_of_help, steps_of_page

PAGE = """
```
one --a \\
    b   # why
# a comment

two
```
```text
not this
```
```console
$ three
said
…
$ four
```
```python
x = 1
```
"""


def test_commands_dialogues_and_programs_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documentation, "ROOT", tmp_path)
    (page := tmp_path / "page.md").write_text(PAGE)
    assert steps_of_page(page) == [
        Step(source="page.md:3", command="one --a b   # why"),
        Step(source="page.md:3", command="two"),
        Step(source="page.md:13", command="three", printed=("said", "…")),
        Step(source="page.md:13", command="four", printed=()),
        Step(source="page.md:19", command="python -c 'x = 1\n'"),
    ]


def test_an_example_of_help_may_be_explained_and_go_on_within_quotes() -> None:
    parser = argparse.ArgumentParser(
        prog="tool",
        epilog="""\
examples:
  pykafkalog one --a \\
      b                  the reader's own words
  pykafkalog two "of
      three" 'and four'
                         of an explanation

exit code: 0""",
    )
    assert [step.command for step in steps_of_help(parser)] == [
        "pykafkalog one --a b",
        "pykafkalog two \"of three\" 'and four'",
    ]


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ((), "\n", True),
        ((), "more\n", False),
        (("a", "b"), "a\nb\n\n", True),
        (("a", "b"), "a\n", False),
        (("a … c",), "a 17 c\n", True),
        (("…", "z"), "x\ny\nz\n", True),
        (("…", "z"), "x\nzz\n", False),
    ],
)
def test_what_a_dialogue_says(expected: tuple[str, ...], printed: str, same: bool) -> None:
    assert says(expected, printed) is same
