"""AlterClientQuotas (key 49): set and remove quotas of users, client ids, addresses (KIP-546).

Behaviour (S-QTA-6)
* One result per entity. The alterations that are not refused are made together, and are in force
  when the answer goes out, also for connections that are open.
* An entity is a user, a client id, both, or an address; null names the default. INVALID_REQUEST for
  any other entity, an empty name, an invalid address, a key that such an entity does not have, a
  value that is not above 0 or does not fit, a key twice, and an entity twice.
* A quota that is not set may be removed. `validate_only` checks everything and changes nothing.
"""

from collections.abc import Mapping
from typing import Final

from broker import many
from broker.api_facts import Api
from broker.cluster.client_quotas import Alteration, ClientQuotas, QuotaOperation
from broker.request import RequestContext
from broker.security.access import Access, Operation, ResourceType
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError, shortened
from protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredEntityPart,
    QuotaAlteration,
    QuotaAlterationResult,
)
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.ALTER_CLIENT_QUOTAS,
    versions=(0, 1),
    most_elements=50_000,
    # ControllerApis.handleAlterClientQuotas
    accesses=(Access(ResourceType.CLUSTER, Operation.ALTER_CONFIGS),),
    make=lambda s: AlterClientQuotasHandler(s.client_quotas),
)


class AlterClientQuotasHandler:
    """Has the quotas in the metadata tree changed."""

    def __init__(self, quotas: ClientQuotas) -> None:
        self._quotas = quotas

    async def __call__(
        self, ctx: RequestContext, request: AlterClientQuotasRequest
    ) -> AlterClientQuotasResponse:
        """The response, when the changes are in force."""
        alterations = []
        for entry in request.entries:
            alterations.append(_alteration(entry))
            await PAUSE
        results = await self._quotas.alter(alterations, validate_only=request.validate_only)
        return AlterClientQuotasResponse(entries=many.results(results, _result))

    def error_response(
        self, ctx: RequestContext, request: AlterClientQuotasRequest, code: ErrorCode
    ) -> AlterClientQuotasResponse:
        """The code for every entity."""
        return AlterClientQuotasResponse(
            entries=many.results(
                request.entries,
                lambda entry: _result((_parts(entry), KafkaError(code, code.text))),
            )
        )


def _parts(entry: QuotaAlteration) -> dict[str, str | None]:
    """Names by type; the last one of a type counts, as in Kafka."""
    return {part.entity_type: part.entity_name for part in entry.entity}


def _alteration(entry: QuotaAlteration) -> Alteration:
    return Alteration(
        parts=_parts(entry),
        operations=[
            QuotaOperation(one.key, None if one.remove else one.value) for one in entry.ops
        ],
    )


def _result(found: tuple[Mapping[str, str | None], KafkaError | None]) -> QuotaAlterationResult:
    parts, error = found
    return QuotaAlterationResult(
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else shortened(str(error)),
        entity=[
            AlteredEntityPart(entity_type=kind, entity_name=name) for kind, name in parts.items()
        ],
    )
