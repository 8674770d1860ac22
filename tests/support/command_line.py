"""Runs `pykafkalog …` as a process of its own, of the installation under test (`installation`)."""

import subprocess
from typing import NamedTuple, Protocol

from tests.support.installation import Installation, under_test


class Printed(NamedTuple):
    """The outputs of a command."""

    out: str
    err: str


class Command(Protocol):
    """Runs a command in this process: the fixture `command` of `tests/unit/tools`."""

    def __call__(self, *words: object, code: int = 0) -> Printed: ...


def pykafkalog(
    *words: str, stdin: str = "", installation: Installation | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end; return its exit code and outputs."""
    used = installation or under_test()
    return used.run([*used.tool(), *words], stdin=stdin, check=False)
