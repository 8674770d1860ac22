"""Messages as the client library hands them out, made by hand."""

from dataclasses import dataclass

from confluent_kafka import KafkaError


@dataclass(frozen=True)
class FakeMessage:
    """The part of a message of `confluent_kafka` that records and reports use."""

    its_key: bytes | None = None
    its_value: bytes | None = None
    place: tuple[str, int] = ("t", 0)
    its_offset: int = 0
    code: int | None = None
    """The error in its place."""

    def error(self) -> KafkaError | None:
        return None if self.code is None else KafkaError(self.code)

    def key(self) -> bytes | None:
        return self.its_key

    def value(self) -> bytes | None:
        return self.its_value

    def topic(self) -> str:
        return self.place[0]

    def partition(self) -> int:
        return self.place[1]

    def offset(self) -> int:
        return self.its_offset

    def timestamp(self) -> tuple[int, int]:
        return 1, 1000 + self.its_offset

    def headers(self) -> None:
        return None
