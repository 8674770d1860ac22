"""The frames of the fuzzer: every advertised API and version, drawn from a seed.

semantic   well-formed, with one to three fields at values that nobody expects there
counts     well-formed, with one array or text as long as it may be
records    Produce with records that only a broken client sends (tests.frames.batches)
bytes      a valid frame with bytes changed, inserted, taken away
header     a valid body under another API, version, client id or length
garbage    anything
"""

import copy
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, Final

from protocol.api_keys import ApiKey
from protocol.errors import ProtocolError
from protocol.messages.registry import request_codec, spec
from protocol.schema.constructs import ArrayOf, Blob, Text, Wire
from tests.frames.batches import odd_records
from tests.frames.mutations import all_places, damaged, random_changes
from tests.frames.valid import Names, advertised_versions, tree_of, valid_request

_NASTY: Final = (
    *(b"\xff", b"\0", b"\x01", b"\x02", b"\x7f", b"\x80", b"\xfe"),
    *(b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\x80\x80\x04"),
    *(b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\x98\x96\x80", b"\xff\xff\xff\xff"),
    *(b"\x7f\xff", b"\x80\0", b"\xff\xff"),
    b"\x7f\xff\xff\xff\xff\xff\xff\xff",
)
COUNTS: Final = (*(100,) * 6, *(1_000,) * 3, 5_000)
"""Great counts are rare, because most of the time would go into them."""
TEXT_LENGTHS: Final = (249, 1_000, 32_767)
BLOB_BYTES: Final = (1_000, 1_000_000)
KINDS: Final = (
    *("semantic",) * 10,
    *("records",) * 3,
    *("bytes",) * 5,
    "counts",
    "header",
    "garbage",
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One request with its length in front."""

    key: ApiKey | None
    """None: the header was touched as well, or there is none."""
    version: int
    kind: str
    changes: tuple[tuple[str, str], ...]
    """The changes: field, value."""
    data: bytes
    request: Any = None
    """The message, if the frame has one."""

    @property
    def may_be_silent(self) -> bool:
        """Whether no answer may come: acks=0, or the frame announces more bytes than it has."""
        if len(self.data) < 4 or struct.unpack_from(">i", self.data)[0] > len(self.data) - 4:
            return True
        return self.key is None or (
            self.key is ApiKey.PRODUCE and self.request is not None and self.request.acks == 0
        )

    @property
    def text(self) -> str:
        """For people."""
        name = "?" if self.key is None else f"{self.key.name} v{self.version}"
        changed = ", ".join(f"{field}={value}" for field, value in self.changes)
        return f"{name} {self.kind} {changed}".rstrip()


class FrameSource:
    """The frames of one seed."""

    def __init__(self, advertised: Mapping[ApiKey, tuple[int, int]], rng: Random) -> None:
        self._rng = rng
        self._targets = list(advertised_versions(advertised))

    def next(self, names: Names) -> Frame:
        """Return the next frame, about these things."""
        rng = self._rng
        kind = rng.choice(KINDS)
        if kind == "garbage":
            return self._garbage()
        key, version = rng.choice(self._targets)
        if kind == "records":
            key, version = ApiKey.PRODUCE, rng.choice(_versions_of(self._targets, ApiKey.PRODUCE))
        request = valid_request(key, version, names)
        tree = tree_of(key, version)
        changes: tuple[tuple[str, str], ...] = ()
        if kind == "semantic":
            changes = self._odd_fields(tree, request)
        elif kind == "counts":
            changes = self._long(tree, request)
        elif kind == "records":
            what, records = odd_records(rng, names.timestamp_ms)
            request.topic_data[0].partition_data[0].records = records
            changes = ((what, f"{len(records)} bytes"),)
            if rng.random() < 0.2:
                changes += self._odd_fields(tree, request)
        body = request_codec(key, version).build(request)
        if kind == "bytes":
            body = damaged(body, rng, _NASTY, (1, 1, 1, 2, 3, 8))
            return Frame(
                key, version, kind, (), framed(key, version, body), _read(key, version, body)
            )
        if kind == "header":
            return self._odd_header(key, version, body)
        return Frame(key, version, kind, changes, framed(key, version, body), request)

    def _odd_fields(self, tree: Wire, request: Any) -> tuple[tuple[str, str], ...]:
        count = self._rng.choice((1, 1, 1, 2, 2, 3, 5))
        changes = random_changes(tree, request, self._rng, count)
        for place, value in changes:
            place.set(request, value)
        return tuple((place.label, shown(value)) for place, value in changes)

    def _long(self, tree: Wire, request: Any) -> tuple[tuple[str, str], ...]:
        rng = self._rng
        places = [
            place
            for place in all_places(tree, request)
            if isinstance(place.node, ArrayOf | Text | Blob)
        ]
        if not places:
            return ()
        place = rng.choice(places)
        node, now = place.node, place.get(request)
        if isinstance(node, Text):
            length = rng.choice(TEXT_LENGTHS)
            place.set(request, rng.choice("xé")[:1] * (length // 2 if length > 30_000 else length))
        elif isinstance(node, Blob):
            length = rng.choice(BLOB_BYTES)
            place.set(request, bytes(length))
        else:
            length = rng.choice(COUNTS)
            place.set(request, _many(node, now, length, rng))
        return ((place.label, f"{length} long"),)

    def _odd_header(self, key: ApiKey, version: int, body: bytes) -> Frame:
        rng = self._rng
        data = bytearray(framed(key, version, body))
        what = rng.randrange(4)
        if what == 0:
            other, its_version = rng.choice(self._targets)
            struct.pack_into(">hh", data, 4, other, its_version)
        elif what == 1:
            at = rng.choice((4, 6))
            struct.pack_into(">h", data, at, rng.choice((-1, 0, 99, 32_767, -32_768, 74, 1_000)))
        elif what == 2:
            length = rng.choice((-2, -1, 0, 32_767, -32_768, 5))
            struct.pack_into(">h", data, 12, length)
        else:
            size = len(data) - 4
            wrong = rng.choice((0, 1, -1, -(2**31), 2**31 - 1, size - 1, size + 1, 100_000_001))
            struct.pack_into(">i", data, 0, wrong)
        return Frame(None, version, "header", ((key.name, str(what)),), bytes(data))

    def _garbage(self) -> Frame:
        size = self._rng.choice((0, 1, 4, 10, 40, 300))
        data = self._rng.randbytes(size)
        if self._rng.random() < 0.5:
            data = struct.pack(">i", size) + data
        return Frame(None, 0, "garbage", (), data)


def _read(key: ApiKey, version: int, body: bytes) -> Any:
    """Return the request that the broker will read from the body; None if it cannot."""
    try:
        return request_codec(key, version).parse_at(body, memoryview(body), 0, len(body))[0]
    except ProtocolError:
        return None


@cache
def _header(key: ApiKey, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 1, 4) + b"fuzz" + b"\0" * spec(key).flexible(version)


def framed(key: ApiKey, version: int, body: bytes) -> bytes:
    """Length, header and body."""
    header = _header(key, version)
    return struct.pack(">i", len(header) + len(body)) + header + body


def _versions_of(targets: Sequence[tuple[ApiKey, int]], key: ApiKey) -> list[int]:
    return [version for one, version in targets if one is key]


def _many(node: ArrayOf, now: Any, length: int, rng: Random) -> list[Any]:
    """Equal elements, or all different where that is easy."""
    if isinstance(node.element, Text):
        return [f"n{index}" for index in range(length)]
    if node.element.code and node.element.code not in "?d" and node.element.code != "16s":
        top = 127 if node.element.code == "b" else 32_767
        return [index % top for index in range(length)]
    if not now:
        return []
    if rng.random() < 0.5 or not hasattr(now[0], "name"):
        return list(now) * (length // len(now))
    made = []
    for index in range(length):
        element = copy.copy(now[0])
        element.name = f"n{index}"
        made.append(element)
    return made


def shown(value: Any) -> str:
    """A value, in a line."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
