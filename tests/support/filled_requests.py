"""A request of any API in which everything is named twice, made from its declaration."""

from typing import Any

from protocol.messages.registry import request_api
from protocol.schema.constructs import ArrayOf, Blob, Fields, Prefixed, Text, UuidBytes, Wire


def filled(key: int, version: int) -> Any:
    """Two elements in every array; every text and id is another one."""
    return _value(request_api(key).at(version), [0])


def _value(node: Wire, count: list[int]) -> Any:
    count[0] += 1
    if isinstance(node, Fields):
        value = node.cls()
        for name, member in node.fields:
            setattr(value, name, _value(member, count))
        return value
    if isinstance(node, ArrayOf):
        return [_value(node.element, count) for _ in range(2)]
    if isinstance(node, UuidBytes):
        return count[0].to_bytes(16, "big")
    if isinstance(node, Text):
        return f"text-{count[0]}"
    if isinstance(node, Blob):
        return b""
    return _value(node.subcon, count) if isinstance(node, Prefixed) else 0
