"""The quotas of a broker, for the code that checks them and for the code that sets them.

While nothing is limited, `charging` and `accepting` are None, and their modules are not imported.
"""

from typing import TYPE_CHECKING, Final

from broker.quotas.creation_rates import UNLIMITED, CreationRates
from broker.quotas.entity import ABSENT, Entity
from broker.quotas.rate import Windows
from storage.clock import Clock

if TYPE_CHECKING:
    from broker.quotas.charging import Charging
    from broker.quotas.connection_rates import ConnectionRates

DEFAULT_WINDOWS: Final = Windows()


class Quotas:
    """All quotas of one broker. Event loop only."""

    def __init__(
        self,
        clock: Clock,
        windows: Windows = DEFAULT_WINDOWS,
        mutation_windows: Windows = DEFAULT_WINDOWS,
    ) -> None:
        """`mutation_windows` measure changes of topics, `windows` all else."""
        self._clock = clock
        self._windows = windows
        self._mutation_windows = mutation_windows
        self._charging: Charging | None = None
        self._accepting: ConnectionRates | None = None
        self._limits = UNLIMITED
        self.charging: Charging | None = None
        """The quotas of users and client ids; None while none is set."""
        self.accepting: ConnectionRates | None = None
        """The limits of new connections; None while there are none."""

    def change(self, entity: Entity, key: str, bound: float | None) -> None:
        """Set one quota of an entity, of the keys that it has; None removes it."""
        if entity.ip is not ABSENT:
            self._rates().change(entity.ip, bound)
            self._choose_accepting()
            return
        charging = self._charging
        if charging is None:
            from broker.quotas.charging import Charging

            charging = self._charging = Charging(self._clock, self._windows, self._mutation_windows)
        charging.change(entity, key, bound)
        self.charging = charging if charging.is_set else None

    def limit_connections(self, limits: CreationRates) -> None:
        """Hold new connections to these limits."""
        self._limits = limits
        if limits.limited or self._accepting is not None:
            self._rates().reconfigure(limits)
        self._choose_accepting()

    def _rates(self) -> "ConnectionRates":
        if self._accepting is None:
            from broker.quotas.connection_rates import ConnectionRates

            self._accepting = ConnectionRates(self._clock, self._windows)
        return self._accepting

    def _choose_accepting(self) -> None:
        rates = self._accepting
        is_limited = rates is not None and (self._limits.limited or rates.limits_addresses)
        self.accepting = rates if is_limited else None
