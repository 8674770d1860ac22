"""Environment variables that replace arguments of the command line."""

from collections.abc import Mapping
from typing import Final

BOOTSTRAP_VARIABLE: Final = "PYKAFKALOG_BOOTSTRAP"
"""HOST:PORT of the broker to connect to first, if `--bootstrap-server` is not given."""
DEFAULT_BOOTSTRAP: Final = "localhost:9092"


def default_bootstrap(environment: Mapping[str, str]) -> str:
    """The address for commands without `--bootstrap-server`; an empty variable counts as unset."""
    return environment.get(BOOTSTRAP_VARIABLE) or DEFAULT_BOOTSTRAP


def bootstrap_help(environment: Mapping[str, str]) -> str:
    """The help text of `--bootstrap-server`."""
    named = (environment.get(BOOTSTRAP_VARIABLE) or "").replace("%", "%%")
    if named:
        return f"where to connect first (default: {named}, by {BOOTSTRAP_VARIABLE})"
    return f"where to connect first (default: {BOOTSTRAP_VARIABLE}, else {DEFAULT_BOOTSTRAP})"


def is_it_right(environment: Mapping[str, str], address: object) -> str:
    """The question to ask when no broker answers at `address`; it names the address's source."""
    given = environment.get(BOOTSTRAP_VARIABLE) == address
    source = f"{BOOTSTRAP_VARIABLE}={address}" if given else "--bootstrap-server"
    return f"Is a broker running, and is {source} right?"
