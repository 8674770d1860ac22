"""How the descriptors of a process are shared: connections, files, and a reserve for the rest.

A process that has none left can neither accept nor roll a segment nor write a checkpoint. So
connections never get all: what they may not take is there for the files of logs, which are closed
and opened again when they are too many (`storage.open_files`), and the reserve is for what nobody
counts: files that are open for a moment, SQLite, listeners, slices of files on their way to a slow
reader.
"""

from dataclasses import dataclass
from typing import Final

_LARGEST_RESERVE: Final = 1024
_SMALLEST_RESERVE: Final = 64
LOW: Final = 4096
"""A limit below this is told as a warning: Kafka's documentation asks for 100,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptorBudget:
    """Who may have how many. Tests make small ones."""

    limit: int
    """Descriptors that the process may have."""
    connections: int
    """Clients' connections."""
    files: int
    """Files and mapped indexes that logs keep open."""
    reserve: int
    """Never taken by either."""

    @classmethod
    def of(cls, limit: int) -> "DescriptorBudget":
        """The shares of a process with this limit: an eighth is reserved, and of the rest two
        thirds are for connections."""
        reserve = min(max(limit // 8, _SMALLEST_RESERVE), _LARGEST_RESERVE, limit // 2)
        connections = (limit - reserve) * 2 // 3
        return cls(
            limit=limit,
            connections=connections,
            files=limit - reserve - connections,
            reserve=reserve,
        )

    @property
    def ceiling(self) -> int:
        """No connection may have a descriptor of this number or above.

        The system hands out the lowest free number, so a number says how many are taken, by
        whomever.
        """
        return self.limit - self.reserve // 2


UNLIMITED: Final = DescriptorBudget.of(1 << 30)
"""For worlds without descriptors."""
