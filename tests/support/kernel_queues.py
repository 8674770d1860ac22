"""Bytes and connections that the kernel holds for a broker."""

from pathlib import Path


def unread_bytes(port: int) -> int:
    """Bytes that clients have sent to connections of the local `port` and nobody has received.

    A connection that waits to be accepted counts as one.
    """
    total = 0
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, _, queues, *_ = line.split()
        if int(local.rpartition(":")[2], 16) == port:
            # For a listening socket the kernel shows the connections in its backlog.
            total += int(queues.rpartition(":")[2], 16)
    return total
