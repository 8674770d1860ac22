"""A plugin of pytest: writes the outcomes of a run to a file, for `tests.running.stage`.

    python -m pytest -p tests.running.record --record FILE [--only-in TESTS] …

The log lines of client libraries, which they print by the hundred while a broker is away, go to
`FILE.clients` instead of the report of each failed test.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

CLIENT_LINE = re.compile(r"^%[0-7]\|\d+\.\d+\|.*\n?", re.MULTILINE)
"""A line of librdkafka's log: `%3|1795773731.465|FAIL|rdkafka#producer-20| …`."""

ESCAPE_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", type=Path, help="write the outcomes of the run to this file")
    parser.addoption("--only-in", type=Path, help="run the tests of this JSON list of ids, only")


def pytest_configure(config: pytest.Config) -> None:
    record = config.getoption("--record")
    if record is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(record))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    only_in = config.getoption("--only-in")
    if only_in is not None:
        chosen = frozenset(json.loads(only_in.read_text()))
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
        items[:] = [item for item in items if item.nodeid in chosen]


class Recorder:
    """Notes what passed, and keeps why the rest did not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clients = path.with_suffix(".clients")
        self.passed: list[str] = []
        self.skipped = 0
        self.seconds: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        self.not_collected: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note an outcome, before the terminal's report gets the shortened text."""
        spent = self.seconds.get(report.nodeid, 0) + report.duration
        self.seconds[report.nodeid] = spent
        if report.failed:
            self.failed.setdefault(report.nodeid, reason(report.longrepr))
            self._shorten(report)
        elif report.skipped:
            self.skipped += 1
        elif report.when == "call":
            self.passed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.not_collected[report.nodeid] = reason(report.longrepr)

    def pytest_sessionfinish(self) -> None:
        told = {
            "passed": self.passed,
            "skipped": self.skipped,
            "failed": self.failed,
            "not_collected": self.not_collected,
            "seconds": {test: round(s, 1) for test, s in self.seconds.items() if s >= 1},
        }
        self.path.write_text(json.dumps(told))

    def _shorten(self, report: pytest.TestReport) -> None:
        with self.clients.open("a") as clients:
            for index, (title, text) in enumerate(report.sections):
                clients.writelines(CLIENT_LINE.findall(text))
                shorter = ESCAPE_CODE.sub("", CLIENT_LINE.sub("", text))
                report.sections[index] = (title, shorter)


def reason(longrepr: Any) -> str:
    """Return the first line of why a test or a file failed."""
    crash = getattr(longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(longrepr)
    lines = [line for line in ESCAPE_CODE.sub("", text).splitlines() if line.strip()]
    if not lines:
        return "no reason was given"
    return lines[0] if crash is not None else lines[-1]
