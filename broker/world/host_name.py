"""The name of this machine, for listeners whose host is not configured."""

import socket


def canonical_host_name() -> str:
    """What this machine is called in full. It may ask a name server: not for the event loop."""
    return socket.getfqdn()
