"""Docstrings, comments and pages keep to the rule of words.

The rule (CONTRIBUTING.md): a sentence names its subject first, by a noun, and has an active verb.
The test finds by form alone sentences that begin with Who, What, Where, Of or As in the place of a
noun, and "is told", "is said", "is asked", "goes on with".
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
ROOMS: Final = (
    *("broker", "config", "examples", "pipeline", "protocol", "publishing", "pykafkalog"),
    *("scripts", "storage", "tests", "tls", "tools"),
)

_BEGINNING = re.compile(
    r"(?:^|[.:;!?|]\s+|\*\*\s+|\n\s*\n\s*|\n\s*(?:[*-]|\d+\.|[a-z]\.)\s+)(?:\*\*)?"
    r"((?:Whom?|Whose|What|Where|Of)\b|As\b(?! (?:Kafka|in|long|soon|well|if|`)))(?![^.]*\?)"
)
_VERB = re.compile(
    r"\b((?:is|are|was|were|be|been|being)\s+(?:told|said|asked)\b|go(?:es|ing)?\s+on\s+with\b)"
)
_HINT = re.compile(
    r"\b(?:Whom?|Whose|What|Where|Of|As|told|said|asked|go(?:es|ing)?\s+on\s+with)\b"
)
_NO_PROSE = re.compile(r"^```.*?^```$|^#[^\n]*$", re.MULTILINE | re.DOTALL)


def prose(path: str, text: str) -> Iterator[tuple[int, str]]:
    """(line, text): of a page all but blocks and headings, of a module docstrings and comments."""
    if not path.endswith(".py"):
        yield 1, _NO_PROSE.sub(lambda block: "\n" * block[0].count("\n"), text)
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(string)), lineno=line):
                yield line, string
    first, comment = 0, ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != first + comment.count("\n"):
                yield first, comment
                first, comment = token.start[0], ""
            comment += token.string.lstrip("# ") + "\n"
    yield first, comment


def flaws(path: str, text: str) -> list[str]:
    """What breaks the rule in a file: place and words."""
    return [
        f"{path}:{line + part.count(chr(10), 0, match.start(1))}: {' '.join(match[1].split())}"
        for line, part in prose(path, text)
        for pattern in (_BEGINNING, _VERB)
        for match in pattern.finditer(part)
    ]


@pytest.mark.parametrize("room", [*ROOMS, "docs"])
def test_files_keep_to_the_rule(room: str) -> None:
    files = {*(ROOT / room).rglob("*.py"), *(ROOT / room).rglob("*.md")} - {Path(__file__)}
    if room == "docs":
        files.update(ROOT.glob("*.md"))
    found = []
    for file in sorted(files):
        text = file.read_text()
        if _HINT.search(text):  # reading a file word by word takes fifty times as long
            found += flaws(str(file.relative_to(ROOT)), text)
    assert files
    assert found == []


def test_words_against_the_rule_are_noticed() -> None:
    module = '''"""Queues.

What waits goes on with its work. The lock is
told. Of two locks one is held. What is it? As Kafka says, it is fair.
"""
# Who asks
# is answered. A lock
f()  # is asked
# as it was
def f(): "As soon as it can. As two."
'''
    assert flaws("a.py", module) == [
        "a.py:3: What",
        "a.py:4: Of",
        "a.py:3: goes on with",
        "a.py:3: is told",
        "a.py:10: As",
        "a.py:6: Who",
        "a.py:8: is asked",
    ]
    page = "# What it is\n\n```\nWhat\n```\n| `a` | Who it is |\n* **Of it.** Where it lies\n"
    assert flaws("a.md", page) == ["a.md:6: Who", "a.md:7: Of", "a.md:7: Where"]
