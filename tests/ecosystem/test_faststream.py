"""FastStream, over aiokafka and over confluent-kafka: each order has its invoice."""

import json
from pathlib import Path

import pytest

from tests.support.ecosystem.environments import python
from tests.support.ecosystem.processes import ProgramProcess
from tests.support.ecosystem.records import PATIENCE_S, Found, Tail, send
from tests.support.either_broker import EitherBroker
from tests.support.topics import make_topic

PROGRAM = Path(__file__).parent / "programs/faststream_orders.py"
ORDERS = 600


def order(number: int) -> dict[str, float]:
    return {"number": number, "pieces": number % 7, "price": number / 4}


def invoices(records: list[Found]) -> dict[int, float]:
    found = [json.loads(record.value or b"") for record in records]
    return {invoice["number"]: invoice["total"] for invoice in found}


@pytest.mark.parametrize("client", ["aiokafka", "confluent"])
def test_each_order_has_its_invoice_over_kills_of_service_and_broker(
    broker: EitherBroker, tmp_path: Path, client: str
) -> None:
    """Acknowledged after the answer, so at least once: an invoice may come twice."""
    make_topic(broker.bootstrap, "orders", "invoices")
    orders = [(None, json.dumps(order(number)).encode()) for number in range(ORDERS)]
    third = ORDERS // 3
    with (
        ProgramProcess(
            tmp_path / "faststream",
            [python("faststream"), str(PROGRAM)],
            environment={"BOOTSTRAP": broker.bootstrap, "CLIENT": client},
        ) as service,
        Tail(broker.bootstrap, "invoices") as out,
    ):

        def until_invoiced(count: int) -> None:
            service.wait_until(
                out.has(lambda records: len(invoices(records)) >= count),
                PATIENCE_S,
                f"{count} orders have an invoice",
            )

        send(broker.bootstrap, "orders", orders[:third])
        until_invoiced(third // 4)
        service.kill()
        service.start()
        until_invoiced(third)
        send(broker.bootstrap, "orders", orders[third : 2 * third])
        until_invoiced(third + third // 4)
        broker.kill()
        broker.start()
        send(broker.bootstrap, "orders", orders[2 * third :])
        until_invoiced(ORDERS)
        expected = {o["number"]: o["pieces"] * o["price"] for o in map(order, range(ORDERS))}
        assert invoices(out.records) == expected
        service.stop()
