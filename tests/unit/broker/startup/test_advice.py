"""Behind the reason why a broker did not start stands what a person may do."""

import errno

import pytest

from broker.startup.advice import explained
from broker.world.sockets import SocketTransport
from broker.world.transport import BindError
from config.definition import ConfigError
from config.listener import Listener
from storage.errors import DirectoryLocked, StorageError


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (BindError("x", errno=errno.EADDRINUSE), "Is another broker running?"),
        (BindError("x", errno=errno.EADDRNOTAVAIL), "an address of this machine"),
        (BindError("x", errno=errno.EACCES), "Ports below 1024"),
        (BindError("no such name"), "an address of this machine"),
        (BindError("x", errno=errno.EADDRINUSE, for_metrics=True), "metrics.http.listener is"),
        (DirectoryLocked("/d"), "Stop it, or take another directory"),
        (StorageError("/d", OSError("x")), "May this user write there?"),
        (KeyError("x"), "This is a bug"),
    ],
)
def test_each_reason_has_its_own_advice(error: Exception, advice: str) -> None:
    said = explained(error)
    assert said.startswith(f"{str(error).rstrip('.')}. ")
    assert advice in said
    assert ("another broker" in said) == (advice == "Is another broker running?")


def test_a_bad_value_says_it_all_itself() -> None:
    assert explained(ConfigError("Invalid value x")) == "Invalid value x"


def test_a_host_that_has_no_address_is_not_taken_for_a_port_in_use() -> None:
    nowhere = Listener(name="PLAINTEXT", host="no.such.host.invalid", port=0, protocol="PLAINTEXT")
    with pytest.raises(BindError) as caught:
        SocketTransport().listen(nowhere, backlog=1, send_buffer=-1, receive_buffer=-1)
    assert "Is another broker running" not in explained(caught.value)
    assert "[Errno" not in str(caught.value)
