"""The leftovers of a run are reported and removed: each run is a process of its own."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import json, os, subprocess, tempfile
from pathlib import Path
from tests.running import leftovers

leftovers.ENDING_S = 0.5
run = leftovers.Leftovers()
os.environ.update(run.environment)
tempfile.tempdir = None
shm = Path(f"/dev/shm/test-{{os.getpid()}}")
{act}
found = run.collect()
print(json.dumps([found_.test + ' ' + found_.reason for found_ in found]))
print(run.directory.exists())
print(len(leftovers._children()))
"""

ORPHAN = "subprocess.run(['bash', '-c', 'sleep {} &'], check=True)"


def left(act: str) -> list[str]:
    """The leftovers that a run with this act reports; all of them have to be removed afterwards."""
    ran = subprocess.run(
        [sys.executable, "-c", RUN.format(act=act)], capture_output=True, text=True, check=True
    )
    *_, found, directory, children = ran.stdout.splitlines()
    assert (directory, children) == ("False", "0")
    told: list[str] = json.loads(found)
    return told


@pytest.mark.parametrize(
    "act",
    [
        "",
        "subprocess.Popen(['true'])",
        ORPHAN.format(0.2),
        "(run.directory / 'pytest-of-someone').mkdir()",
        "(run.directory / 'liblz4-java-1.so').touch()",
        "shm.touch(); shm.unlink()",
    ],
)
def test_what_ends_or_is_expected_is_not_left(act: str) -> None:
    assert left(act) == []


def test_an_orphan_is_told_and_ended() -> None:
    (told,) = left(ORPHAN.format(1234))
    assert told.startswith("left behind: process ")
    assert told.endswith("sleep 1234 ")


def test_a_temporary_file_is_told_and_removed() -> None:
    (told,) = left("tempfile.mkstemp(prefix='mine-')")
    pattern = r"left behind: mine-\S+ a temporary file of a test, of \d\d:\d\d:\d\d"
    assert re.fullmatch(pattern, told)


def test_shared_memory_is_told() -> None:
    (told,) = left("shm.touch()")
    name = Path(told.split()[2])
    assert name.parent == Path("/dev/shm")
    name.unlink()
