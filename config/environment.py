"""Variables of the environment that stand for arguments of the command line."""

from collections.abc import Mapping
from typing import Final

BOOTSTRAP_VARIABLE: Final = "PYKAFKALOG_BOOTSTRAP"
"""HOST:PORT of the broker to connect to first, where `--bootstrap-server` is not given."""
DEFAULT_BOOTSTRAP: Final = "localhost:9092"


def default_bootstrap(environment: Mapping[str, str]) -> str:
    """Where a command connects that was not told; an empty variable counts as none."""
    return environment.get(BOOTSTRAP_VARIABLE) or DEFAULT_BOOTSTRAP


def bootstrap_help(environment: Mapping[str, str]) -> str:
    """What `--help` says of `--bootstrap-server`."""
    named = (environment.get(BOOTSTRAP_VARIABLE) or "").replace("%", "%%")
    if named:
        return f"where to connect first (default: {named}, by {BOOTSTRAP_VARIABLE})"
    return f"where to connect first (default: {BOOTSTRAP_VARIABLE}, else {DEFAULT_BOOTSTRAP})"


def is_it_right(environment: Mapping[str, str], address: object) -> str:
    """What to ask a person when nobody answers at `address`, named by where it came from."""
    given = environment.get(BOOTSTRAP_VARIABLE) == address
    source = f"{BOOTSTRAP_VARIABLE}={address}" if given else "--bootstrap-server"
    return f"Is a broker running, and is {source} right?"
