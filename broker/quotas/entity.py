"""The entity that has a quota: a user, a client id, both, or an address; each may be the default.

On the wire an entity is a list of (type, name), the name null for the default. In the metadata tree
it is a node:

    /config/users/<user>                       a user
    /config/users/<user>/clients/<client-id>   a client id of a user
    /config/clients/<client-id>                a client id, whoever uses it
    /config/ips/<address>                      an address

with names encoded (`sanitizer`; addresses are not) and `<default>` for the default.
Source: `org.apache.kafka.common.quota.ClientQuotaEntity`, `kafka.zk.AdminZkClient` (3.9).
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from broker.quotas.keys import OF_ADDRESSES, OF_CLIENTS, QuotaKey
from broker.quotas.sanitizer import desanitized, sanitized

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = (USER, CLIENT_ID, IP)

USERS: Final = "/config/users"
CLIENTS: Final = "/config/clients"
IPS: Final = "/config/ips"
WATCHED: Final = (USERS, CLIENTS, IPS)

_DEFAULT_NODE: Final = "<default>"


class Special(Enum):
    """A value in place of a name."""

    DEFAULT = "whoever has no quota of their own"
    ABSENT = "no matter who"


DEFAULT: Final = Special.DEFAULT
ABSENT: Final = Special.ABSENT

Name = str | Special


class Entity(NamedTuple):
    """One entity. An address stands alone; without one there is a user, a client id or both."""

    user: Name = ABSENT
    client_id: Name = ABSENT
    ip: Name = ABSENT

    @classmethod
    def of(cls, parts: Mapping[str, str | None]) -> "Entity":
        """Make it from names by type, None for the default. Types must be of `TYPES`."""

        def name(kind: str) -> Name:
            if kind not in parts:
                return ABSENT
            found = parts[kind]
            return DEFAULT if found is None else found

        return cls(name(USER), name(CLIENT_ID), name(IP))

    @property
    def parts(self) -> dict[str, str | None]:
        """Names by type, None for the default."""
        return {
            kind: None if name is DEFAULT else name
            for kind, name in zip(TYPES, self, strict=True)
            if not isinstance(name, Special) or name is DEFAULT
        }

    @property
    def keys(self) -> Mapping[str, QuotaKey]:
        """The keys of the quotas that it may have."""
        return OF_CLIENTS if self.ip is ABSENT else OF_ADDRESSES

    @property
    def path(self) -> str:
        """Its node."""
        if self.ip is not ABSENT:
            return f"{IPS}/{_DEFAULT_NODE if isinstance(self.ip, Special) else self.ip}"
        if self.user is ABSENT:
            return f"{CLIENTS}/{_node(self.client_id)}"
        if self.client_id is ABSENT:
            return f"{USERS}/{_node(self.user)}"
        return f"{USERS}/{_node(self.user)}/clients/{_node(self.client_id)}"

    def __str__(self) -> str:
        return ", ".join(
            f"default {kind}" if name is None else f"{kind} {name}"
            for kind, name in self.parts.items()
        )


def entity_at(path: str) -> Entity | None:
    """The entity whose node is at `path`; None if no quotas are kept there."""
    match path.split("/")[2:]:
        case ["users", user]:
            return Entity(user=_name(user))
        case ["users", user, "clients", client_id]:
            return Entity(user=_name(user), client_id=_name(client_id))
        case ["clients", client_id]:
            return Entity(client_id=_name(client_id))
        case ["ips", ip]:
            return Entity(ip=DEFAULT if ip == _DEFAULT_NODE else ip)
    return None


def _node(name: Name) -> str:
    return _DEFAULT_NODE if isinstance(name, Special) else sanitized(name)


def _name(node: str) -> Name:
    return DEFAULT if node == _DEFAULT_NODE else desanitized(node)


def user_of(principal: str) -> str:
    """The user part of a quota's entity: the name of a principal such as `User:alice`."""
    return principal.partition(":")[2]


def is_address(text: str) -> bool:
    """Whether it is an IP address as they are written."""
    import ipaddress  # not needed before there is a quota

    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
