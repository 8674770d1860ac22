"""Tables on a terminal of 80 columns, the same rows in a pipe, and a watch that is drawn anew."""

import re
import time

import pytest

from tests.support.command_in_process import BrokerTool, in_process
from tests.support.installation import under_test
from tests.support.terminal import COLUMNS, CTRL_C, Terminal
from tests.support.topics import make_topic

LONG = "a-topic-with-a-name-that-is-much-longer-than-any-column-of-a-table-could-be"


def on_terminal(*words: str) -> Terminal:
    """A command on a terminal, whose size no variable of the environment gives."""
    used = under_test()
    environment = used.process_environment()
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        environment.pop(name, None)
    return Terminal([*used.tool(), *words], environment, used.directory)


@pytest.fixture(scope="module")
def topic(bootstrap: str) -> str:
    make_topic(bootstrap, LONG, retention_ms="99999999")
    BrokerTool("produce", bootstrap)(LONG, stdin=b"x\n" * 1234)
    return LONG


COMMANDS = (
    ("cluster",),
    ("cluster", "--api-versions"),
    ("topics", "--describe", LONG),
    ("topics", "--sizes"),
    ("topics", "--trim", LONG, "--before", "end", "--dry-run"),
    ("configs", "--topic", LONG, "--all"),
    ("configs", "--broker", "1", "--all"),
    ("configs", "--loggers", "1"),
    ("transactions", "--producers", LONG),
    ("transactions", "--why", f"{LONG}:0"),
    ("transactions", "--find-hanging"),
    ("log-dirs",),
    ("log-dirs", "--topics"),
    ("log-dirs", "--partitions", LONG),
    ("groups",),
)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_tables_fit_a_terminal_and_are_plain_in_a_pipe(
    bootstrap: str, topic: str, words: tuple[str, ...]
) -> None:
    with on_terminal(*words, "-b", bootstrap) as terminal:
        assert terminal.end() == 0, terminal.text
    # Sentences, and the line above a topic's table, are wrapped by the terminal itself.
    lines = terminal.text.splitlines()
    tables = [line for line in lines if "  " in line.strip() and not line.startswith(f"{LONG}  ")]
    assert [line for line in tables if len(line) > COLUMNS] == []
    assert "…" not in terminal.text
    piped = in_process(*words, "-b", bootstrap)
    assert piped.returncode == 0, piped.stderr
    assert re.search(r"[─│━┃╇…\x1b]|\d,\d{3}\b", piped.stdout) is None


@pytest.mark.parametrize("words", [("topics", "--sizes"), ("log-dirs", "--partitions")])
def test_a_long_name_is_folded_and_not_cut(
    bootstrap: str, topic: str, words: tuple[str, ...]
) -> None:
    with on_terminal(*words, "-b", bootstrap) as terminal:
        assert terminal.end() == 0
    lines = terminal.text.splitlines()
    assert topic in "".join(line.split("  ")[0].strip() for line in lines)
    assert topic in in_process(*words, "-b", bootstrap).stdout


def test_a_watch_is_drawn_anew_and_ended_by_ctrl_c(bootstrap: str, topic: str) -> None:
    words = ("topics", "--watch", topic, "--interval", "0.2", "-b", bootstrap)
    with on_terminal(*words) as terminal:
        deadline = time.monotonic() + 20
        while terminal.raw.count("1,234") < 3:
            assert terminal.read()
            assert time.monotonic() < deadline
        drawn = re.split(r"[\r\n]+", terminal.without_escapes)
        terminal.type(CTRL_C)  # the terminal shows it, too
        assert terminal.end() == 130
    assert "Traceback" not in terminal.text
    assert "\x1b[?25h" in terminal.raw  # the cursor is there again
    assert max(map(len, drawn)) <= COLUMNS
