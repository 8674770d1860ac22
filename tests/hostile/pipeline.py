"""Many requests on one connection, sent ahead of their answers: faster than a loop of calls."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from protocol.api_keys import ApiKey
from tests.support.wire_client import WireClient, read_response, request_frame

AHEAD = 200
"""Frames on the way."""


def answers(port: int, key: ApiKey, version: int, requests: Iterable[Any]) -> list[Any]:
    """One answer per request, in order."""
    return _exchange(
        port,
        (request_frame(key, version, request) for request in requests),
        lambda frame: read_response(key, version, frame)[1],
    )


def exchange_frames(port: int, frames: Iterable[bytes]) -> list[bytes]:
    """The answers to whole frames, as they came."""
    return _exchange(port, frames, lambda frame: frame)


def _exchange(port: int, frames: Iterable[bytes], read: Callable[[bytes], Any]) -> list[Any]:
    found: list[Any] = []
    places = threading.Semaphore(AHEAD)
    sent = 0
    all_sent = threading.Event()
    with WireClient(port, timeout_s=120) as client:

        def send() -> None:
            nonlocal sent
            for frame in frames:
                places.acquire()
                client.send(frame)
                sent += 1
            all_sent.set()

        sender = threading.Thread(target=send)
        sender.start()
        while not (all_sent.is_set() and len(found) == sent):
            if len(found) == sent:
                all_sent.wait(0.001)
                continue
            found.append(read(client.receive_frame()))
            places.release()
        sender.join()
    return found
