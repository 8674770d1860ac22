"""Quotas as brokers describe them (DescribeClientQuotas), and their changes (AlterClientQuotas)."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredEntityPart,
    QuotaAlteration,
    QuotaOperation,
)
from protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    QuotaFilterComponent,
)
from tools.errors import CommandError
from tools.wire.brokers import Brokers
from tools.wire.refusals import require_done

SETTLED_S: Final = 2.0
"""How long to wait until a broker shows a change that another one accepted."""
PAUSE_S: Final = 0.05

Entity = Mapping[str, str | None]
"""The owner of a quota: names by Kafka's types (user, client-id, ip); None stands for all names
without a quota of their own."""

_EXACT: Final = 0
_DEFAULT: Final = 1


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of one entity: values by key."""

    entity: Entity
    values: Mapping[str, float]


def describe(cluster: Brokers, entity: Entity, *, strict: bool = False) -> list[Quotas]:
    """Return what is set for entities that have these parts, sorted; `strict`: and no others.

    Raises CommandError.
    """
    request = DescribeClientQuotasRequest(
        components=[
            QuotaFilterComponent(
                entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name
            )
            for kind, name in entity.items()
        ],
        strict=strict,
    )
    answer = cluster.any().call(request, DescribeClientQuotasResponse)
    require_done(answer.error_code, answer.error_message)
    found = [
        Quotas(
            {part.entity_type: part.entity_name for part in each.entity},
            {value.key: value.value for value in sorted(each.values, key=lambda one: one.key)},
        )
        for each in answer.entries or ()
    ]
    return sorted(found, key=lambda each: sorted((k, v or "") for k, v in each.entity.items()))


def alter(
    cluster: Brokers,
    entity: Entity,
    add: Mapping[str, float],
    delete: Sequence[str],
    *,
    validate_only: bool,
) -> None:
    """Set and remove, all or nothing.

    Raises CommandError with the broker's message, or if a key to remove is not set: brokers take
    any key there, and after a misspelled one the quota would still be in force.
    """
    if delete:
        found = describe(cluster, entity, strict=True)
        values = found[0].values if found else {}
        for key in delete:
            if key not in values:
                known = ", ".join(values) or "nothing"
                raise CommandError(f"there is no quota {key} to delete: {known} is set")
    operations = [QuotaOperation(key=key, value=value) for key, value in add.items()]
    operations += [QuotaOperation(key=key, remove=True) for key in delete]
    parts = [AlteredEntityPart(entity_type=k, entity_name=name) for k, name in entity.items()]
    request = AlterClientQuotasRequest(
        entries=[QuotaAlteration(entity=parts, ops=operations)], validate_only=validate_only
    )
    answer = cluster.any().call(request, AlterClientQuotasResponse)
    for result in answer.entries:
        require_done(result.error_code, result.error_message)


def describe_settled(
    cluster: Brokers, entity: Entity, add: Mapping[str, float], delete: Sequence[str]
) -> list[Quotas]:
    """Describe an entity after a change, once its broker shows it: brokers learn of it later."""
    deadline = time.monotonic() + SETTLED_S
    while True:
        found = describe(cluster, entity, strict=True)
        values = found[0].values if found else {}
        settled = add.keys() <= values.keys() and not any(key in values for key in delete)
        if settled or time.monotonic() > deadline:
            return found
        time.sleep(PAUSE_S)
