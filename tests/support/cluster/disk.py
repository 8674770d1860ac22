"""A log directory on a disk of its own that can be full: a tmpfs, which only root may mount.

`fill` makes the disk as large as its content, so that a full disk takes no memory.
"""

import os
import subprocess
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

ROOM_BYTES: Final = 1 << 30
_FILLING_S: Final = 10.0


@cache
def may_mount() -> bool:
    """Whether disks can be had here: not in every container may root mount."""
    with TemporaryDirectory() as directory:
        try:
            Disk(Path(directory) / "disk").close()
        except (OSError, subprocess.CalledProcessError):
            return False
    return True


class Disk:
    """Mounted at `path` until `close`, which leaves its content in a plain directory."""

    def __init__(self, path: Path, room_bytes: int = ROOM_BYTES) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={room_bytes}", "tmpfs", str(path))

    def fill(self) -> None:
        """No byte more can be written. Raises AssertionError if a writer is always faster."""
        deadline = time.monotonic() + _FILLING_S
        while time.monotonic() < deadline:
            found = os.statvfs(self.path)
            used = max(found.f_blocks - found.f_bfree, 1) * found.f_frsize
            if self._resize(used):
                return
        raise AssertionError(f"{self.path} could not be filled")

    def give_room(self) -> None:
        """Make the disk large, so that writes succeed again."""
        assert self._resize(ROOM_BYTES)

    def close(self) -> None:
        """Unmount; nobody may use it any more."""
        kept = self.path.with_name(f"{self.path.name}.kept")
        _run("cp", "--archive", "--sparse=always", str(self.path), str(kept))
        _run("umount", "--lazy", str(self.path))
        self.path.rmdir()
        kept.rename(self.path)

    def _resize(self, size: int) -> bool:
        words = ("mount", "-o", f"remount,size={size}", str(self.path))
        return subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode == 0


def _run(*words: str) -> None:
    subprocess.run(words, check=True)
