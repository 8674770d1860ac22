"""Patterns of hosts in rules, and which of them a client's address matches.

A pattern is `*`, an address, or (Kafka 4.4) a range of addresses like `10.0.0.0/8`. Addresses of
IPv6 are compared by value (decision 99): Java writes `0:0:0:0:0:0:0:1` where others write `::1`,
and a rule should not depend on who wrote it. Any other text matches nobody: Kafka's rules know no
names of hosts.
"""

from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeVar

from protocol.acls.rules import WILDCARD

MOST_KNOWN: Final = 1024
"""Addresses of clients whose patterns are remembered."""

Network = IPv4Network | IPv6Network
_KeyT = TypeVar("_KeyT")


def network_of(host: str) -> Network:
    """Return the range of addresses that a pattern with `/` names. Raises ValueError."""
    return ip_network(host, strict=False)


class HostPatterns:
    """The patterns in all rules, and those that the addresses asked about last match.

    Patterns of ranges are kept by the length of their prefix, so an address costs one look-up for
    each length in use, however many ranges there are.
    """

    def __init__(self) -> None:
        self._uses: dict[str, int] = {}
        self._ranges: dict[tuple[int, int], dict[int, set[str]]] = {}
        """(bits of an address, bits behind the prefix) to prefix to patterns."""
        self._spellings: dict[str, set[str]] = {}
        """Address of IPv6 to the patterns that are this address."""
        self._matching: dict[str, tuple[str, ...]] = {}

    def add(self, host: str) -> None:
        """One more rule has this pattern."""
        uses = self._uses[host] = self._uses.get(host, 0) + 1
        if uses == 1:
            self._register(host, True)

    def remove(self, host: str) -> None:
        """One rule less has this pattern."""
        self._uses[host] -= 1
        if not self._uses[host]:
            del self._uses[host]
            self._register(host, False)

    def matching(self, host: str) -> tuple[str, ...]:
        """Return the patterns that the address `host` matches: `*`, and all others in use."""
        found = self._matching.get(host)
        if found is None:
            if len(self._matching) >= MOST_KNOWN:
                self._matching.clear()
            found = self._matching[host] = (WILDCARD, *self._find(host))
        return found

    def _find(self, host: str) -> set[str]:
        found = set(self._spellings.get(_plain(host), ())) if ":" in host else {host}
        if self._ranges:
            try:
                address = ip_address(host)
            except ValueError:
                return found
            for (bits, behind), by_prefix in self._ranges.items():
                if bits == address.max_prefixlen:
                    found |= by_prefix.get(int(address) >> behind, set())
        return found

    def _register(self, host: str, used: bool) -> None:
        if "/" in host:
            try:
                network = network_of(host)
            except ValueError:
                return  # written by somebody who did not check: it matches nobody
            kind = network.max_prefixlen, network.max_prefixlen - network.prefixlen
            by_prefix = self._ranges.setdefault(kind, {})
            _change(by_prefix, int(network.network_address) >> kind[1], host, used)
            if not by_prefix:
                del self._ranges[kind]
        elif ":" in host:
            _change(self._spellings, _plain(host), host, used)
        else:
            return
        self._matching.clear()


def _change(texts: dict[_KeyT, set[str]], key: _KeyT, text: str, used: bool) -> None:
    if used:
        texts.setdefault(key, set()).add(text)
        return
    texts[key].discard(text)
    if not texts[key]:
        del texts[key]


def _plain(host: str) -> str:
    """The one spelling of an address of IPv6; any other text is returned as it is."""
    try:
        return str(IPv6Address(host))
    except ValueError:
        return host
