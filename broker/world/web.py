"""A broker's reads from the web: the keys of an issuer of tokens, by their URL."""

from collections.abc import Callable
from typing import Final, Protocol

from storage.clock import Clock

TIMEOUT_S: Final = 10.0
"""The timeout of connecting, and of each read."""
LONGEST_S: Final = 60.0
"""The timeout of all reads together."""
LARGEST: Final = 1024 * 1024
"""Bytes; more is an error."""


class Web(Protocol):
    """Reads documents."""

    def read(self, url: str) -> bytes:
        """Return the document at an https:, http: or file: URL. Blocks: call it in a thread.

        Raises OSError.
        """
        ...


class NoWeb:
    """The web of a world that has none."""

    def read(self, url: str) -> bytes:
        """See `Web`: nothing can be reached."""
        raise OSError(f"{url} cannot be reached")


NO_WEB: Final = NoWeb()


class MachineWeb:
    """The machine's network, and its files."""

    def __init__(self, clock: Clock, longest_s: float = LONGEST_S) -> None:
        self._clock = clock
        self._longest_s = longest_s

    def read(self, url: str) -> bytes:
        """See `Web`. Certificates are verified by the certificates that the machine trusts."""
        from urllib.parse import unquote, urlsplit  # imported late: most brokers read nothing

        parts = urlsplit(url)
        if parts.scheme == "file":
            with open(unquote(parts.path), "rb") as file:
                return self._whole(file.read1)
        from http.client import HTTPException
        from urllib.request import urlopen

        try:
            with urlopen(url, timeout=TIMEOUT_S) as response:  # only http and https: config.sasl
                return self._whole(response.read1)
        except HTTPException as error:
            raise OSError(f"no HTTP answer: {error!r}") from error

    def _whole(self, read: Callable[[int], bytes]) -> bytes:
        document = b""
        end = self._clock.monotonic() + self._longest_s
        while piece := read(LARGEST + 1 - len(document)):
            document += piece
            if len(document) > LARGEST:
                raise OSError(f"more than {LARGEST} bytes")
            if self._clock.monotonic() > end:
                raise TimeoutError(f"not all of it came within {self._longest_s:.0f} s")
        return document
