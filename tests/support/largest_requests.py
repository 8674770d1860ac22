"""The largest requests of every API, made from its declaration.

`largest(key, version, path, count)` is a request with `count` elements in the array at `path`, each
with its own names and numbers, and as little as possible in every other array. `arrays` lists the
arrays of a request. So a new API is covered without a change here.
"""

from collections.abc import Iterator
from typing import Any

from protocol.messages.registry import request_api
from protocol.schema.constructs import ArrayOf, Blob, Fields, Prefixed, Text, UuidBytes, Wire

Path = tuple[str, ...]
"""Names of the fields that lead to an array, the outermost first."""


def arrays(key: int, version: int) -> list[Path]:
    """Return every array of a request, nested ones too."""
    return list(_arrays(request_api(key).at(version), ()))


def _arrays(node: Wire, path: Path) -> Iterator[Path]:
    if isinstance(node, ArrayOf):
        yield path
        yield from _arrays(node.element, path)
    elif isinstance(node, Fields):
        for name, member in node.fields:
            yield from _arrays(member, (*path, name))


def largest(key: int, version: int, path: Path, count: int, **fields: Any) -> Any:
    """Return a request with `count` elements at `path`; `fields` are set at the top."""
    value = _value(request_api(key).at(version), path, count, 0)
    for name, content in fields.items():
        setattr(value, name, content)
    return value


def _value(node: Wire, path: Path | None, count: int, number: int) -> Any:
    """Return a value; `path` leads from here to the array, None if the array is elsewhere."""
    if isinstance(node, Fields):
        value = node.cls()
        for name, member in node.fields:
            inner = path[1:] if path and path[0] == name else None
            setattr(value, name, _value(member, inner, count, number))
        return value
    if isinstance(node, ArrayOf):
        if path is None:
            return []
        if not path:
            return [_value(node.element, None, count, at) for at in range(count)]
        return [_value(node.element, path, count, number)]
    if isinstance(node, UuidBytes):
        return number.to_bytes(16, "big")
    if isinstance(node, Text):
        return f"t{number}"
    if isinstance(node, Blob):
        return b""
    if isinstance(node, Prefixed):
        raise TypeError(f"no value for {node!r}")
    if node.code == "?":
        return False
    return (
        number % 127 if node.code in ("b", "B") else number % 32_000 if node.code == "h" else number
    )
