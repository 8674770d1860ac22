"""Whose processes the tests start: this checkout's, or those of an installed wheel.

`PYKAFKALOG_TEST_ENVIRONMENT` names a virtual environment that a wheel was installed in
(`scripts/test` makes one for the integration and conformance tests). Brokers and the command line
are then started from there, by the commands that a user types. Neither the working directory nor
PYTHONPATH shows them this checkout (`tests/integration/test_what_runs.py` asks them), so a module
that is missing in the wheel, or imported by a name that only the checkout has, fails a test.

The test code imports the checkout in either case, and these processes stay with it:

* `tests.anomalies.sabotage`: it replaces functions in modules that it imports by the checkout's
  names;
* client processes (`tests.anomalies.workload`): they are test code;
* the broker and the command line where unit and conformance tests call them as functions.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
VARIABLE: Final = "PYKAFKALOG_TEST_ENVIRONMENT"


@dataclass(frozen=True, slots=True)
class Installation:
    """How its processes are started."""

    python: str
    directory: Path
    """The working directory of its processes."""
    package: str
    """What the rooms lie in, with a dot behind it; "" for a checkout."""
    broker_words: tuple[str, ...]
    """For the interpreter: what `pykafkalog-broker` runs."""
    tool_words: tuple[str, ...]
    """For the interpreter: what `pykafkalog` runs."""

    def broker(self, python_options: Sequence[str] = ()) -> list[str]:
        """The command that starts a broker; arguments follow."""
        return [self.python, *python_options, *self.broker_words]

    def tool(self) -> list[str]:
        """The command line; its command and arguments follow."""
        return [self.python, *self.tool_words]

    def process_environment(self) -> dict[str, str]:
        """As a user's: compiled modules are kept, or every start would compile them all anew."""
        left_out = {"PYTHONDONTWRITEBYTECODE"} | ({"PYTHONPATH"} if self.package else set())
        return {k: v for k, v in os.environ.items() if k not in left_out}


CHECKOUT: Final = Installation(
    python=sys.executable,
    directory=ROOT,
    package="",
    broker_words=("-m", "broker"),
    tool_words=("-m", "pykafkalog"),
)


def in_environment(environment: Path) -> Installation:
    """Of a virtual environment that the wheel was installed in."""
    commands = environment / "bin"
    for name in ("python", "pykafkalog-broker", "pykafkalog"):
        assert (commands / name).exists(), f"{environment} holds no installed pykafkalog"
    return Installation(
        python=str(commands / "python"),
        directory=environment,
        package="pykafkalog.",
        broker_words=(str(commands / "pykafkalog-broker"),),
        tool_words=(str(commands / "pykafkalog"),),
    )


def under_test() -> Installation:
    """What this run of the tests is about."""
    environment = os.environ.get(VARIABLE)
    return CHECKOUT if not environment else in_environment(Path(environment).absolute())
