"""IncrementalAlterConfigs (key 44): set, delete, append, subtract single configs.

Behaviour (S-CFG-4)
* It alters topics; this broker, and (with an empty name) all brokers; levels of this broker's
  loggers. Client metrics and groups: INVALID_REQUEST with the reason.
* For brokers it changes the keys that `config.dynamic` allows; other keys are refused as in Kafka
  (INVALID_REQUEST, "Cannot update these configs dynamically").
* APPEND and SUBTRACT work on lists only (INVALID_CONFIG) and start from the value in force: the
  broker's if the topic sets none. A key may be named once.
* Resources succeed and fail one by one; a resource changes as a whole or not at all. A resource
  that is named twice is an INVALID_REQUEST.
* A client that may not alter the configs of a topic, or those of the cluster for everything else,
  gets TOPIC_AUTHORIZATION_FAILED or CLUSTER_AUTHORIZATION_FAILED, once the request is well formed.
* `validate_only` checks everything and changes nothing.
"""

from typing import Final

from broker.api_facts import Api
from broker.request import RequestContext
from broker.resource_configs import resources
from broker.resource_configs.alteration import AlteringHandler, ConfigOwners
from broker.resource_configs.changes import (
    broker_list_in_force,
    check_changes,
    incremental,
    topic_list_in_force,
)
from broker.resource_configs.loggers import alter_loggers
from broker.resource_configs.resources import ConfigResourceType, check_broker_name
from broker.security.access import Operation
from protocol.api_keys import ApiKey
from protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

API: Final = Api(
    key=ApiKey.INCREMENTAL_ALTER_CONFIGS,
    versions=(0, 1),
    most_elements=50_000,
    # ControllerApis.authorizeAlterResource
    asks=resources.questions(Operation.ALTER_CONFIGS),
    make=lambda s: IncrementalAlterConfigsHandler(
        ConfigOwners(s.controller, s.broker_configs), allowed=s.allowed
    ),
)


class IncrementalAlterConfigsHandler(AlteringHandler):
    """Changes single configs of topics, brokers and loggers, all of a resource or none."""

    response = IncrementalAlterConfigsResponse
    result = AlterConfigsResourceResponse

    async def _alter(
        self, ctx: RequestContext, resource: AlterConfigsResource, *, validate_only: bool
    ) -> None:
        check_changes(resource.configs)
        kind, name = resource.resource_type, resource.resource_name
        resources.check_allowed(self._allowed, ctx, Operation.ALTER_CONFIGS, kind, name)
        broker = self._owners.brokers.current
        if kind == ConfigResourceType.BROKER_LOGGER:
            check_broker_name(name, broker.broker_id, may_be_empty=False)
            alter_loggers(resource.configs, validate_only=validate_only)
            return
        list_in_force = (
            broker_list_in_force(broker)
            if kind == ConfigResourceType.BROKER
            else topic_list_in_force(broker)
        )
        change = incremental(resource.configs, list_in_force)
        await self._owners.alter(kind, name, change, validate_only=validate_only)
