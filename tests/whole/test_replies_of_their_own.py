"""Every reply belongs to one connection, because the throttle time of its client is written into it
(S-QTA-3): no handler gives the same object twice."""

from typing import Any

import pytest

from broker.network.request_handling import RequestHandling
from broker.registry import ADVERTISED
from protocol.api_keys import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.types import ZERO_UUID
from tests.frames.valid import Names, advertised_versions, valid_request
from tests.support.whole_broker import LOG_DIR, WholeBroker, run_whole_broker, whole_broker
from tests.whole.plain import make_coordinators, set_quota

VERSIONS = ApiVersionsRequest(client_software_name="x", client_software_version="1")


def test_no_handler_gives_a_reply_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    replies: list[Any] = []
    settled = RequestHandling.settle

    def noted(self: Any, route: Any, context: Any, reply: Any, local_s: float) -> Any:
        if reply is not None:
            replies.append(reply)
        return settled(self, route, context, reply, local_s)

    monkeypatch.setattr(RequestHandling, "settle", noted)

    async def scenario(broker: WholeBroker) -> None:
        await broker.create_topic("t", 2)
        await make_coordinators(broker)
        await set_quota(broker, client_id="nobody", request_percentage=1)
        replies.clear()
        names = Names(topic="t", topic_id=ZERO_UUID, directory=LOG_DIR)
        for key, version in advertised_versions(ADVERTISED):
            for _ in range(2):
                client = broker.client()
                try:
                    await client.call(
                        key, version, valid_request(key, version, names), patience_s=60
                    )
                except OSError:
                    assert key == ApiKey.SASL_AUTHENTICATE  # it ends the connection
                client.close()

    run_whole_broker(scenario)
    assert len({type(reply) for reply in replies}) > len(ADVERTISED) - 3
    assert len({id(reply) for reply in replies}) == len(replies)


@whole_broker()
async def test_s_qta_3_a_throttle_time_is_told_to_the_throttled_client_alone(
    broker: WholeBroker,
) -> None:
    await set_quota(broker, client_id="greedy", request_percentage=1)
    charging = broker.server.components.quotas.charging
    assert charging is not None
    # Work takes no virtual time, so the time that it would have taken is charged here.
    charging.request.spend_unchecked("ANONYMOUS", "greedy", 100.0, charging.now_ms())
    throttled = await broker.client("greedy").call(ApiKey.API_VERSIONS, 3, VERSIONS)
    assert throttled.throttle_time_ms > 0
    other = await broker.client("other").call(ApiKey.API_VERSIONS, 3, VERSIONS)
    assert other.throttle_time_ms == 0
