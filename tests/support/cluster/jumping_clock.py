"""A wall clock that jumps, for one broker of this project: a test writes how far it is off.

The broker (`tests.anomalies.cluster_broker`) reads eight bytes of a file that is mapped into its
memory, which is cheap enough for a clock. Only wall time jumps: monotonic time never does.
"""

import mmap
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

_OFFSET_MS: Final = struct.Struct("<q")
FILE: Final = "clock"
"""Beside `server.properties`."""


def set_clock(directory: Path, offset_ms: int) -> None:
    """Have the wall clock of the broker of `directory` be so far ahead (or behind, below 0)."""
    path = directory / FILE
    if not path.exists():
        path.write_bytes(bytes(_OFFSET_MS.size))
    with path.open("r+b") as file:
        file.write(_OFFSET_MS.pack(offset_ms))


def install(put: Callable[[Any, str, Any], None], directory: Path) -> None:
    """In the broker: read the offset at each look at the clock; 0 at the start."""
    from broker.world.clock import SystemClock

    set_clock(directory, 0)
    with (directory / FILE).open("r+b") as file:
        shared = mmap.mmap(file.fileno(), _OFFSET_MS.size)
    read, real = _OFFSET_MS.unpack_from, SystemClock.wall_ms

    def wall_ms(self: SystemClock) -> int:
        return real(self) + int(read(shared)[0])

    put(SystemClock, "wall_ms", wall_ms)
