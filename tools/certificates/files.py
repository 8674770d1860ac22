"""The files of a directory of trial certificates: made once, readable by their owner only."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from tls.authority import Authority, hosts_of
from tools.errors import CommandError

AUTHORITY: Final = "ca.pem"
AUTHORITY_KEY: Final = "ca.key"
BROKER: Final = "broker.pem"
_RESERVED: Final = ("ca", "broker")


class TrialFiles:
    """One directory. Methods raise CommandError."""

    def __init__(self, directory: Path, now: float, days: int) -> None:
        self._directory = directory
        self._now = now
        self._days = days

    def make(self, hosts: Sequence[str], clients: Sequence[str]) -> None:
        """Make the authority, the broker's and the clients' files that do not exist yet.

        A broker's certificate that exists must be for `hosts`.
        """
        taken = [name for name in clients if name in _RESERVED]
        if taken:
            raise CommandError(f"--client {taken[0]}: {taken[0]}.pem is another file's name")
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            known = self.hosts()
            missing = [] if known is None else [host for host in hosts if host not in known]
            if missing:
                raise CommandError(
                    f"{self._directory / BROKER} is for {', '.join(known or ('nobody',))}, and not"
                    f" for {missing[0]}: remove it, and run this again with every --host"
                )
            authority = self._authority()
            self._write(BROKER, lambda: authority.server(hosts).pem())
            for name in clients:
                self._write(f"{name}.pem", partial(_client_pem, authority, name))
        except OSError as error:
            where = error.filename or self._directory
            raise CommandError(f"cannot write {where}: {error.strerror or error}") from None

    def hosts(self) -> list[str] | None:
        """Return the hosts of the broker's certificate; None if it does not exist."""
        path = self._directory / BROKER
        try:
            return hosts_of(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CommandError(f"cannot read {path}: {error.strerror or error}") from None
        except ValueError as error:
            raise CommandError(f"{path} is no certificate: {error}") from None

    def _authority(self) -> Authority:
        certificate, key = self._directory / AUTHORITY, self._directory / AUTHORITY_KEY
        if certificate.exists() and key.exists():
            try:
                return Authority.read(
                    certificate.read_bytes(), key.read_bytes(), self._now, self._days
                )
            except ValueError as error:
                raise CommandError(f"{certificate} and {key} are no authority: {error}") from None
        if certificate.exists() or key.exists():
            raise CommandError(f"of {certificate} and {key} one is missing: remove the other")
        made = Authority.new(self._now, self._days)
        self._write(AUTHORITY_KEY, made.identity.key_pem)
        self._write(AUTHORITY, made.identity.certificate_pem, mode=0o644)
        return made

    def _write(self, name: str, make: Callable[[], bytes], mode: int = 0o600) -> None:
        """Write a file that does not exist; tell of it either way."""
        path = self._directory / name
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            print(f"kept  {path}")
            return
        with open(descriptor, "wb") as file:
            file.write(make())
        print(f"wrote {path}")


def _client_pem(authority: Authority, name: str) -> bytes:
    return authority.client(name).pem()
