"""The installation whose processes the tests start: this checkout, or an installed wheel.

`PYKAFKALOG_TEST_ENVIRONMENT` names a virtual environment in which a wheel is installed
(`scripts/test` makes one for the integration and conformance tests). Tests then start brokers and
the command line from there, by the commands that a user types. Neither the working directory nor
PYTHONPATH leads these to the checkout (`tests/integration/test_what_runs.py` checks that), so a
module that is missing in the wheel, or imported by a name that only the checkout has, fails a test.

The test code imports the checkout in either case, and these processes stay with it:

* `tests.anomalies.sabotage` and `cluster_broker`, which replace functions in modules that they
  import by the checkout's names;
* client processes (`tests.anomalies.workload`), which are test code;
* the broker and the command line, if unit and conformance tests call them as functions.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
VARIABLE: Final = "PYKAFKALOG_TEST_ENVIRONMENT"
TIMEOUT_S: Final = 120


@dataclass(frozen=True, slots=True)
class Installation:
    """How to start an installation's processes."""

    python: str
    directory: Path
    """The working directory of its processes."""
    package: str
    """Prefix of the rooms' names, with a dot at its end; "" for a checkout."""
    broker_words: tuple[str, ...]
    """Arguments of the interpreter that run `pykafkalog-broker`."""
    tool_words: tuple[str, ...]
    """Arguments of the interpreter that run `pykafkalog`."""

    def broker(self, python_options: Sequence[str] = ()) -> list[str]:
        """Return the command that starts a broker, without the broker's arguments."""
        return [self.python, *python_options, *self.broker_words]

    def tool(self) -> list[str]:
        """Return the command that starts the command line, without its arguments."""
        return [self.python, *self.tool_words]

    def process_environment(self) -> dict[str, str]:
        """Return a user's environment, in which compiled modules are kept between starts."""
        left_out = {"PYTHONDONTWRITEBYTECODE"} | ({"PYTHONPATH"} if self.package else set())
        return {k: v for k, v in os.environ.items() if k not in left_out}

    def run(
        self, command: Sequence[str], *, stdin: str = "", check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end; return its exit code and outputs.

        Raises AssertionError with the outputs if `check` is set and the exit code is not 0.
        """
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
            cwd=self.directory,
            env=self.process_environment(),
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def begin(
        self,
        command: Sequence[str],
        *,
        directory: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> "subprocess.Popen[str]":
        """Start a command whose outputs are pipes, in its own directory or another one."""
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=directory or self.directory,
            env={**self.process_environment(), **(variables or {})},
        )


CHECKOUT: Final = Installation(
    python=sys.executable,
    directory=ROOT,
    package="",
    broker_words=("-m", "broker"),
    tool_words=("-m", "pykafkalog"),
)


def in_environment(environment: Path) -> Installation:
    """Return the installation in a virtual environment."""
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
    """Return the installation that this run tests."""
    environment = os.environ.get(VARIABLE)
    return CHECKOUT if not environment else in_environment(Path(environment).absolute())
