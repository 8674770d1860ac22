"""The name of this machine, for listeners whose host is not configured."""

import socket


def canonical_host_name() -> str:
    """The full name of this machine. It may ask a name server: not for the event loop."""
    return socket.getfqdn()
