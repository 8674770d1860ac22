"""A listener that lets everyone in says so."""

import pytest

from broker.startup.exposure import tell_of_open_listeners
from broker.world.transport import BoundListener


def bound(host: str, protocol: str = "PLAINTEXT") -> BoundListener:
    return BoundListener(name="INSIDE", host=host, port=9092, protocol=protocol)


def test_all_interfaces_without_authentication_are_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tell_of_open_listeners(
        [
            bound("127.0.0.1"),
            bound("0.0.0.0"),
            bound("::"),
            bound("0.0.0.0", "SASL_SSL"),
            bound("10.0.0.1"),
        ]
    )
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert [level for level, _ in said] == ["WARNING", "WARNING"]
    assert said[0][1].startswith("Listener INSIDE://0.0.0.0:9092 is on every interface")
    assert "listeners=INSIDE://127.0.0.1:9092 serves this machine only" in said[0][1]
    assert "INSIDE://[::]:9092" in said[1][1]
