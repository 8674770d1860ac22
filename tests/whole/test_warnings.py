"""A start warns of what lets in others than those that are meant."""

import pytest

from tests.support.whole_broker import WholeBroker, run_whole_broker


def test_a_start_warns_of_open_listeners_and_joined_super_users(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(broker: WholeBroker) -> None:
        assert not broker.has_ended

    run_whole_broker(scenario, super__users="User:a,User:b")
    told = [one.getMessage() for one in caplog.records if one.name == "broker.startup.exposure"]
    listener, users = told
    assert listener.startswith("Listener PLAINTEXT://broker:9092 is on an address of the network")
    assert users.startswith("super.users names one principal, User:a,User:b.")
