"""Kafka's quota keys, and the check of a value of each (S-QTA-6).

Source: `org.apache.kafka.server.config.QuotaConfig`, `ClientQuotaControlManager`.
"""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Final

_FRACTION: Final = 1e-6


class NumberType(Enum):
    """Kafka's types of numbers, and the largest of each."""

    INT = (1 << 31) - 1
    LONG = (1 << 63) - 1
    DOUBLE = None


@dataclass(frozen=True, slots=True)
class QuotaKey:
    """One kind of quota."""

    name: str
    type: NumberType

    def flaw(self, value: float) -> str | None:
        """Why `value` cannot be set; None if it can."""
        if not math.isfinite(value):
            return f"Quota {self.name} must be a finite number"
        if value <= 0:
            return f"Quota {self.name} must be greater than 0"
        most = self.type.value
        if most is not None:
            if value > most:
                article = "an" if self.type is NumberType.INT else "a"
                return (
                    f"Proposed value for {self.name} is too large for {article} {self.type.name}."
                )
            if value % 1.0 > _FRACTION:
                return f"{self.name} cannot be a fractional value."
        return None

    def text(self, value: float) -> str:
        """The value as it is stored."""
        return str(value) if self.type is NumberType.DOUBLE else str(int(value + _FRACTION))


PRODUCER_BYTE_RATE: Final = QuotaKey("producer_byte_rate", NumberType.LONG)
CONSUMER_BYTE_RATE: Final = QuotaKey("consumer_byte_rate", NumberType.LONG)
REQUEST_PERCENTAGE: Final = QuotaKey("request_percentage", NumberType.DOUBLE)
CONTROLLER_MUTATION_RATE: Final = QuotaKey("controller_mutation_rate", NumberType.DOUBLE)
CONNECTION_CREATION_RATE: Final = QuotaKey("connection_creation_rate", NumberType.INT)

OF_CLIENTS: Final = {
    key.name: key
    for key in (
        PRODUCER_BYTE_RATE,
        CONSUMER_BYTE_RATE,
        REQUEST_PERCENTAGE,
        CONTROLLER_MUTATION_RATE,
    )
}
"""The keys of users and client ids."""
OF_ADDRESSES: Final = {CONNECTION_CREATION_RATE.name: CONNECTION_CREATION_RATE}
"""The keys of addresses."""
