"""`zookeeper.connect`: the servers of an ensemble, and the path below which the cluster lives.

    host1:2181,host2:2181,[::1]:2181/kafka/cluster-a

Without a port it is 2181. The path (chroot) is optional; a lone `/` is none.
Source: `org.apache.zookeeper.client.ConnectStringParser`, `common.PathUtils` (3.8).
"""

import re
from typing import Final, NamedTuple

DEFAULT_PORT: Final = 2181
_NOT_IN_PATHS: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff]")


class ZooKeeperAddress(NamedTuple):
    """The servers that have a cluster's tree, and its path there."""

    servers: tuple[tuple[str, int], ...]
    chroot: str
    """The path above all of the cluster's; empty: the root."""

    def __str__(self) -> str:
        servers = ",".join(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.servers
        )
        return servers + self.chroot


def parse_connect(text: str) -> ZooKeeperAddress:
    """Read the value of `zookeeper.connect`. Raises ValueError with the reason in a sentence."""
    names, slash, rest = text.strip().partition("/")
    servers = tuple(_server(name.strip()) for name in names.split(",") if name.strip())
    if not servers:
        raise ValueError("it names no server: host:port,host:port/path is the form")
    chroot = slash + rest if rest else ""
    if chroot:
        _check_path(chroot)
    return ZooKeeperAddress(servers, chroot)


def _server(name: str) -> tuple[str, int]:
    if name.startswith("["):
        host, closed, port = name[1:].partition("]")
        if not closed or (port and not port.startswith(":")):
            raise ValueError(f"{name} is no address of a server")
        port = port[1:]
    else:
        host, _, port = name.rpartition(":") if ":" in name else (name, "", "")
        if ":" in host:
            raise ValueError(f"{name}: an IPv6 address stands in brackets, [{host}]:{port}")
    if not host:
        raise ValueError(f"{name} names no host")
    if not port:
        return host, DEFAULT_PORT
    if not port.isascii() or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"{port} in {name} is no port")
    return host, int(port)


def _check_path(path: str) -> None:
    if path.endswith("/"):
        raise ValueError(f"its path {path} must not end with a /")
    for name in path[1:].split("/"):
        if not name:
            raise ValueError(f"its path {path} has an empty name in it")
        if name in (".", ".."):
            raise ValueError(f"its path {path} has {name} in it")
    if _NOT_IN_PATHS.search(path):
        raise ValueError(f"its path {path!r} has a character in it that ZooKeeper does not take")
