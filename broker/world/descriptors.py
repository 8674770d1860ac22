"""How the descriptors of a process are shared: connections, files, and a reserve for the rest.

A process that has no descriptor left can neither accept a connection, nor roll a segment, nor write
a checkpoint. So connections get a limited share. Another share is for the files of logs: when too
many are open, `storage.open_files` closes some and reopens them on use. The reserve is for
descriptors that are not counted: files open for a moment, SQLite, listeners, slices of files on
their way to a slow reader.
"""

from dataclasses import dataclass
from typing import Final

_LARGEST_RESERVE: Final = 1024
_SMALLEST_RESERVE: Final = 64
LOW: Final = 4096
"""A limit below this is logged as a warning: Kafka's documentation asks for 100,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptorBudget:
    """Numbers of descriptors, by use. Tests make small budgets."""

    limit: int
    """All descriptors that the process may have open."""
    connections: int
    """The share of clients' connections."""
    files: int
    """The share of files and mapped indexes that logs keep open."""
    reserve: int
    """The rest, which neither connections nor logs may use."""

    @classmethod
    def of(cls, limit: int) -> "DescriptorBudget":
        """Divide a limit: an eighth in reserve, two thirds of the rest for connections.

        The reserve is `_SMALLEST_RESERVE` to `_LARGEST_RESERVE`, and half of the limit at most.
        """
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
        """The lowest descriptor number that a connection may not have.

        The system hands out the lowest free number, so a high number means that as many
        descriptors are in use, for whatever purpose.
        """
        return self.limit - self.reserve // 2


UNLIMITED: Final = DescriptorBudget.of(1 << 30)
"""For processes without a limit, and worlds without descriptors."""
