"""The bytes that a process reads and writes are those of the kernel's account of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ACCOUNT = Path("/proc/self/io")
SCRIPT = f"""
import os, sys
from broker.world.process_limits import disk_bytes
with open(sys.argv[1], "wb") as file:
    file.write(bytes(100_000))
    os.fsync(file.fileno())
lines = dict(line.split(": ") for line in open("{ACCOUNT}").read().splitlines())
assert disk_bytes() == (int(lines["read_bytes"]), int(lines["write_bytes"])), (disk_bytes(), lines)
"""


@pytest.mark.skipif(not os.access(ACCOUNT, os.R_OK), reason="no such account here")
def test_bytes_of_disks_are_those_of_the_kernels_account(tmp_path: Path) -> None:
    root = Path(__file__).parents[4]
    words = [sys.executable, "-c", SCRIPT, str(tmp_path / "file")]
    subprocess.run(words, check=True, cwd=root)
