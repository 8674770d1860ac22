"""Addresses of the network as texts, compared as Java's `InetAddress` compares them."""

from ipaddress import IPv4Address, IPv6Address, ip_address


def _parsed(host: str) -> IPv4Address | IPv6Address:
    """Return the address, without its zone; IPv4 within IPv6 is IPv4. Raises ValueError."""
    address = ip_address(host.partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def normalized(host: str) -> str:
    """One text for one address, however it is written; a text that is no address stays."""
    try:
        return str(_parsed(host))
    except ValueError:
        return host


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address; a text that is no address is none of it."""
    try:
        return _parsed(host).is_loopback
    except ValueError:
        return False


def is_every_interface(host: str) -> bool:
    """Whether it stands for all addresses of the machine."""
    return normalized(host) in ("0.0.0.0", "::")
