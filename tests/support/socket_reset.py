"""A connection that ends with RST instead of FIN."""

import socket
import struct
from typing import Final

_AT_ONCE: Final = struct.pack("ii", 1, 0)


def reset_socket(sock: socket.socket) -> None:
    """Close the socket so that the kernel resets the connection and drops what is unsent."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
    sock.close()
