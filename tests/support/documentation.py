"""Extracts the commands of the documentation as a reader would.

In Markdown a fenced block is, by its language:

* none, `sh`, `bash` or `shell`: commands to type;
* `console`: a dialogue; text after `$ ` is typed, the other lines are the output, in which `…`
  stands for anything;
* `python`: a program; each program of a page continues the one before it;
* any other (`text`, `properties`, `yaml`, …): ignored.

In `--help` the lines below "examples:" are commands; text after two blanks explains them.
"""

import argparse
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.installation import ROOT

_FENCE: Final = re.compile(r"^ *```([\w-]*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_EXPLANATION: Final = re.compile(r"\s{2,}(?=[\w(…]).*$")
COMMANDS: Final = frozenset({"", "sh", "bash", "shell"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command or program of the documentation."""

    source: str
    """Its place: `docs/lake.md:17`, or `pykafkalog topics --help`."""
    command: str
    printed: tuple[str, ...] | None = None
    """The output that the page shows; None if it shows none."""


def pages() -> list[Path]:
    """Return README.md and every page of docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def steps_of_page(page: Path) -> list[Step]:
    """Return the steps of a page, in its order."""
    text = page.read_text()
    found: list[Step] = []
    programs: list[str] = []
    for fence in _FENCE.finditer(text):
        language, body = fence.groups()
        source = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, fence.start(2)) + 1}"
        if language in COMMANDS:
            found += (Step(source=source, command=line) for line in _lines(body))
        elif language == "console":
            found += _dialogue(source, body)
        elif language == "python":
            programs.append(body)
            quoted = "\n".join(programs).replace("'", "'\\''")
            found.append(Step(source=source, command=f"python -c '{quoted}'"))
    return found


def _lines(body: str) -> Iterator[str]:
    """Yield commands; a backslash at the end or an open quote continues on the next line."""
    begun = ""
    for line in re.sub(r"\\\n\s*", "", body).splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            begun = f"{begun} {line.strip()}".lstrip()
            if not _is_open(begun):
                yield begun
                begun = ""
    assert not begun, f"a quote is not closed: {begun}"


def _is_open(command: str) -> bool:
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return True
    return False


def _dialogue(source: str, body: str) -> Iterator[Step]:
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield Step(source=source, command=command, printed=tuple(printed.splitlines()))


def steps_of_help(parser: argparse.ArgumentParser) -> list[Step]:
    """Return the examples of a command."""
    text = (parser.epilog or "").partition("examples:\n")[2].partition("\n\n")[0]
    commands = "\n".join(_EXPLANATION.sub("", line.strip()) for line in text.splitlines())
    return [
        Step(source=f"{parser.prog} --help", command=line)
        for line in _lines(commands)
        if not line.startswith(("what ", "Times "))
        if re.match(r"[\w.]+ ", line) and _is_command(line)
    ]


def _is_command(line: str) -> bool:
    """Whether a line is a command, not the second line of an explanation."""
    return line.split()[0] in {"pykafkalog", "pykafkalog-broker", "echo", "seq", "cat", "printf"}


def says(expected: tuple[str, ...], printed: str) -> bool:
    """Whether a dialogue prints what its page says; `…` stands for anything."""
    lines = [
        "(?:.*\n)*?" if line.strip() == "…" else ".*".join(map(re.escape, line.split("…"))) + " *\n"
        for line in expected
    ]
    text = f"{printed.rstrip()}\n" if printed.strip() else ""
    return re.fullmatch("".join(lines), text) is not None
