"""Sends records in transactions: one for all, or one for every N.

An error aborts the open transaction. Earlier transactions stay committed, and the error message
says how many records they have.
"""

from collections.abc import Callable, Iterable
from typing import Any

from tools.errors import CommandError
from tools.produce.delivery import Delivery, NotSent, records, were
from tools.produce.lines import BadInput, Line

TIMEOUT_S = 60.0


def send_in_transactions(
    producer: Any,
    delivery: Delivery,
    lines: Iterable[Line],
    size: int | None,
    advance: Callable[[int], None],
) -> int:
    """Send every line; return how many. `size`: records per transaction. Raises CommandError."""
    committed = pending = 0
    producer.init_transactions(TIMEOUT_S)
    try:
        for line in lines:
            if not pending:
                producer.begin_transaction()
            delivery.send(line)
            pending += 1
            advance(line.length)
            if pending == size:
                _commit(producer, delivery)
                committed, pending = committed + pending, 0
        if pending:
            _commit(producer, delivery)
            committed, pending = committed + pending, 0
    except (BadInput, NotSent, CommandError) as error:
        _abort(producer)
        raise CommandError(f"{error}; {_what_stays(committed)}") from None
    except KeyboardInterrupt:
        _abort(producer)
        raise
    return committed


def _commit(producer: Any, delivery: Delivery) -> None:
    from confluent_kafka import KafkaException

    delivery.finish()
    try:
        producer.commit_transaction(TIMEOUT_S)
    except KafkaException as error:
        raise NotSent(f"the transaction was not committed: {error.args[0].str()}") from None


def _abort(producer: Any) -> None:
    from confluent_kafka import KafkaException

    try:
        producer.abort_transaction(5.0)
    except KafkaException:
        # No transaction is open, or the broker is away and will abort it after its timeout.
        return


def _what_stays(committed: int) -> str:
    if not committed:
        return "nothing was committed"
    return f"{records(committed)} before it {were(committed)} committed, the rest was not"
