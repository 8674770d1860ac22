"""A plugin of pytest that stores which programs were tried, with the results.

    pytest -p tests.support.ecosystem.recording --record-programs docs/ecosystem.json …

A program counts as tried only if all tests of its files ran. The file's entries of other programs
stay.
"""

import datetime
import json
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.ecosystem.programs import PROGRAMS, Program
from tests.support.installation import ROOT


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--record-programs FILE`."""
    parser.addoption("--record-programs", metavar="FILE", type=Path, required=True)


def pytest_configure(config: pytest.Config) -> None:
    """Register the recording of this run."""
    config.pluginmanager.register(Recording(config.getoption("--record-programs")))


class Recording:
    """The results of the tests of this run, by file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.outcomes: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self.left_out: set[str] = set()

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Note files with deselected tests, which do not count as tried."""
        self.left_out |= {str(item.path.relative_to(ROOT)) for item in items}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a result; a test passes if its call passes and setup and teardown do not fail."""
        file, _, _ = report.nodeid.partition("::")
        if report.when == "call" or report.outcome != "passed":
            known = self.outcomes[file].get(report.nodeid)
            if known in (None, "passed"):
                self.outcomes[file][report.nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        """Update the file."""
        known = json.loads(self.file.read_text()) if self.file.exists() else {}
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        for program in PROGRAMS:
            outcomes = self._outcomes(program)
            if outcomes is not None:
                known[program.name] = {
                    "version": program.version(),
                    "tests": len(outcomes),
                    "passed": outcomes.count("passed"),
                    "date": today,
                }
        listed = {
            program.name: known[program.name] for program in PROGRAMS if program.name in known
        }
        self.file.write_text(json.dumps(listed, indent=2) + "\n")

    def _outcomes(self, program: Program) -> list[str] | None:
        """Return the results of a program's tests; None if not all of them ran."""
        if any(file not in self.outcomes or file in self.left_out for file in program.tests):
            return None
        return [outcome for file in program.tests for outcome in self.outcomes[file].values()]
