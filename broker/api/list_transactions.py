"""ListTransactions (key 66): the transactional ids that this broker coordinates.

Behaviour (KIP-664)
* A transaction must match every kind of filter, and one value of each. Unknown state names are
  returned in the response, and match nothing.
* The list has the ids that the client may describe.
* COORDINATOR_LOAD_IN_PROGRESS while any partition of `__transaction_state` is being loaded.

Version notes
* v1+: only transactions that began longer ago than the duration (KIP-994).
* v2: only ids that match a regular expression as a whole (KIP-1152); INVALID_REGULAR_EXPRESSION.
  RE2 matches it, as Kafka's RE2/J does (decision 28): its time is linear in the id's length for
  every pattern, while a pattern of Python's `re` could stop the event loop.
"""

from typing import Final, Protocol

from broker import many
from broker.api_facts import Api, CodeAlone
from broker.coordinator.transaction.coordinator import TransactionCoordinator
from broker.coordinator.transaction.state import TransactionValue, state_from_label
from broker.request import RequestContext
from broker.security.access import Operation, Question, ResourceType
from broker.security.permissions import Permissions
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from storage.clock import Clock
from storage.waits import PAUSE

API: Final = Api(
    key=ApiKey.LIST_TRANSACTIONS,
    versions=(0, 2),
    most_elements=20_000,
    ends_with_client=True,
    # KafkaApis.handleListTransactionsRequest
    asks=(Question(ResourceType.TRANSACTIONAL_ID, Operation.DESCRIBE),),
    make=lambda s: ListTransactionsHandler(s.transaction_coordinator, s.clock, allowed=s.allowed),
)

PATTERN_MEMORY: Final = 1 << 20
"""Bytes that a compiled pattern may take; larger ones are refused."""

NO_DURATION: Final = 0
"""A negative duration filters nothing."""


class _Pattern(Protocol):
    """The part of re2's patterns that is used here."""

    def fullmatch(self, text: str, /) -> object:
        """A match, or None."""
        ...


class ListTransactionsHandler(CodeAlone):
    """Lists transactional ids of all shards on this broker, by state, producer, age and pattern."""

    response = ListTransactionsResponse

    def __init__(
        self,
        transactions: TransactionCoordinator,
        clock: Clock,
        *,
        allowed: Permissions | None = None,
    ) -> None:
        self._allowed = allowed
        self._transactions = transactions
        self._clock = clock

    async def __call__(
        self, ctx: RequestContext, request: ListTransactionsRequest
    ) -> ListTransactionsResponse:
        """The response."""
        wanted = _Filter(request, self._clock.wall_ms())
        known = list(self._transactions.list_transactions())
        allowed = self._allowed
        found = []
        for one in known:
            if wanted.matches(*one) and (
                allowed is None
                or allowed(ctx, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, one[0])
            ):
                found.append(one)
            await PAUSE
        if len(found) > many.MANY:
            ctx.large = True
        return ListTransactionsResponse(
            unknown_state_filters=wanted.unknown_states,
            transaction_states=many.results(found, _state),
        )


def _state(found: tuple[str, TransactionValue]) -> TransactionState:
    transactional_id, value = found
    return TransactionState(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        transaction_state=value.state.label,
    )


class _Filter:
    """The filters of a request. Raises KafkaError for a bad pattern."""

    def __init__(self, request: ListTransactionsRequest, now_ms: int) -> None:
        named = {name: state_from_label(name) for name in request.state_filters}
        self.unknown_states = [name for name, state in named.items() if state is None]
        self._by_state = bool(named)
        self._states = {state for state in named.values() if state is not None}
        self._producer_ids = frozenset(request.producer_id_filters)
        self._begun_before = (
            None if request.duration_filter < NO_DURATION else now_ms - request.duration_filter
        )
        pattern = request.transactional_id_pattern
        self._pattern = _compiled(pattern) if pattern else None

    def matches(self, transactional_id: str, value: TransactionValue) -> bool:
        """Whether the response lists the id."""
        if self._by_state and value.state not in self._states:
            return False
        if self._producer_ids and value.producer_id not in self._producer_ids:
            return False
        if self._begun_before is not None and value.start_ms >= self._begun_before:
            return False
        return self._pattern is None or self._pattern.fullmatch(transactional_id) is not None


def _compiled(pattern: str) -> "_Pattern":
    """Compile with RE2. Raises KafkaError INVALID_REGULAR_EXPRESSION."""
    import re2  # imported only if a request has a pattern

    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_MEMORY
    try:
        compiled: _Pattern = re2.compile(pattern, options=options)
    except re2.error as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from error
    return compiled
