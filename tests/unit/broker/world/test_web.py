"""Documents of the web, read with bounds."""

import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from broker.world.clock import SystemClock
from broker.world.web import LARGEST, NO_WEB, MachineWeb
from tests.support.serving import serving_http

WEB = MachineWeb(SystemClock())


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a key ü.json"
    path.write_bytes(b"{}")
    assert WEB.read(path.as_uri()) == b"{}"
    path.write_bytes(bytes(LARGEST))
    assert len(WEB.read(path.as_uri())) == LARGEST
    path.write_bytes(bytes(LARGEST + 1))
    with pytest.raises(OSError, match="more than"):
        WEB.read(path.as_uri())
    with pytest.raises(FileNotFoundError):
        WEB.read((tmp_path / "absent").as_uri())


def said(*pieces: bytes, status: int = 200, pause_s: float = 0.0) -> Callable[..., None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.end_headers()
        try:
            for piece in pieces:
                request.wfile.write(piece)
                time.sleep(pause_s)
        except ConnectionError:
            pass

    return answer


def test_a_document_of_a_server() -> None:
    with serving_http(said(b"{", b"}")) as url:
        assert WEB.read(url) == b"{}"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (said(b"no", status=404), "404"),
        (said(*[bytes(100_000)] * 11), "more than"),
        (lambda request: request.wfile.write(b"\x00\x01" * 50), "no HTTP answer"),
    ],
)
def test_what_is_no_document_is_an_os_error(answer: Callable[..., object], told: str) -> None:
    with serving_http(answer) as url, pytest.raises(OSError, match=told):
        WEB.read(url)


def test_a_server_that_drips_is_not_waited_for() -> None:
    with (
        serving_http(said(*[b"x"] * 50, pause_s=0.02)) as url,
        pytest.raises(TimeoutError, match="not all of it came"),
    ):
        MachineWeb(SystemClock(), longest_s=0.1).read(url)


def test_a_server_that_is_not_there() -> None:
    with serving_http(said(b"")) as url:
        pass
    with pytest.raises(OSError, match="refused"):
        WEB.read(url)


def test_a_world_without_a_web() -> None:
    with pytest.raises(OSError, match="file:///x cannot be reached"):
        NO_WEB.read("file:///x")
