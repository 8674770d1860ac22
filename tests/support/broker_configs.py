"""Changes configs of a whole broker while it runs."""

from protocol.api_keys import ApiKey
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.whole_broker import WholeBroker, dotted

_VERSION = 1
_SET = 0
TOPIC, BROKER = 2, 4


async def alter(
    broker: WholeBroker, kind: int, name: str, configs: dict[str, str]
) -> tuple[int, str]:
    """Set configs of a resource, `__` for a dot; return the answer's code and message."""
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    AlterableConfig(name=key, config_operation=_SET, value=value)
                    for key, value in dotted(configs).items()
                ],
            )
        ]
    )
    client = broker.client("admin")
    answer = await client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, _VERSION, request)
    client.close()
    return answer.responses[0].error_code, answer.responses[0].error_message or ""


async def altered(broker: WholeBroker, **configs: str) -> None:
    """Set configs of all brokers, `__` for a dot. Raises AssertionError if that is refused."""
    code, message = await alter(broker, BROKER, "", configs)
    assert code == 0, message


async def refused(broker: WholeBroker, **configs: str) -> str:
    """Set configs of all brokers, which must be refused; return the reason."""
    code, message = await alter(broker, BROKER, "", configs)
    assert code != 0, f"{configs} was taken"
    return message


async def altered_topic(broker: WholeBroker, topic: str, **configs: str) -> None:
    """Set configs of a topic, as `altered` does."""
    code, message = await alter(broker, TOPIC, topic, configs)
    assert code == 0, message
