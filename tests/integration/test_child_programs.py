"""Programs that the command line starts: in any folder, and never longer than itself."""

import fcntl
import json
import os
import select
import subprocess
from pathlib import Path

import pytest

from protocol.records.builder import build_batch
from tests.support.installation import CHECKOUT, under_test

EVIL = "raise SystemExit('a stranger ran')\n"


def tool(*words: str, directory: Path) -> "subprocess.Popen[str]":
    """Start a command in a directory, whose modules it does not import itself."""
    used = CHECKOUT if words[0] == "pipeline" else under_test()  # the wheel has no Spark
    return used.begin([used.python, "-P", *used.tool_words, *words], directory=directory)


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    """A server.properties whose log directory holds one topic."""
    partition = tmp_path / "logs" / "t-0"
    partition.mkdir(parents=True)
    (partition / f"{0:020}.log").write_bytes(build_batch([(1, b"k", b"v", ())], leader_epoch=0))
    path = tmp_path / "server.properties"
    path.write_text(f"broker.id=1\nlog.dirs={tmp_path / 'logs'}\n")
    return path


@pytest.mark.parametrize(
    "words",
    [
        ("adopt", "--dry-run", "--json", "server.properties"),
        ("explain-cleaner", "--json", "logs"),
        ("pipeline", "stats", "--log-dirs", "logs", "--json"),
    ],
    ids=lambda words: words[0],
)
def test_modules_of_the_current_folder_are_nobodys(
    properties: Path, words: tuple[str, ...]
) -> None:
    folder = properties.parent
    for name in ("numpy", "pandas", "pyarrow", "trio", "sqlite3", "json"):
        (folder / f"{name}.py").write_text(EVIL)
    for name in ("pykafkalog", "broker", "tools"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(EVIL)
    with tool(*words, directory=folder) as process:
        out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert json.loads(out.splitlines()[0] if words[0] != "adopt" else out)


def test_a_killed_adopt_leaves_no_child_that_holds_the_lock(properties: Path) -> None:
    logs = properties.parent / "logs"
    os.mkfifo(logs / "meta.properties")  # the child holds the lock when it reads this
    with tool("adopt", str(properties), directory=properties.parent) as process:
        writer = os.open(logs / "meta.properties", os.O_WRONLY)  # until it does
        try:
            process.kill()
            poll = select.poll()
            poll.register(writer, 0)
            assert poll.poll(20_000) == [(writer, select.POLLERR)]  # nobody reads any more
        finally:
            os.close(writer)
    with (logs / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits for the rest of its end
