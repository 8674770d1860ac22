"""Integration tests start brokers and commands through `tests.support.installation` alone.

Whoever named an interpreter or called `main` would test the checkout where CI tests the wheel.
"""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PAST_IT = re.compile(
    r"""
    "-m",\s*"(?:broker|tools)\b          # a command of the checkout
    | \b(?:broker|tools)\.__main__\s+import  # the command as a function
    """,
    re.VERBOSE,
)


def test_nothing_else_starts_them() -> None:
    files = [
        path
        for room in ("integration", "support", "anomalies", "crash")
        for path in (TESTS / room).rglob("*.py")
    ]
    assert len(files) > 50
    found = {str(path.relative_to(TESTS)) for path in files if PAST_IT.search(path.read_text())}
    assert found == {
        "support/installation.py",  # which says how
        "anomalies/sabotage.py",  # a broker of the checkout, with some of it replaced
        "anomalies/cluster_broker.py",  # likewise
        "integration/test_documented_commands.py",  # the parsers: what `--help` says is text
    }
