"""Makes this broker known at /brokers/ids, and known again when its session in ZooKeeper has ended.

The node lives as long as the session. Its creation has a number, the broker's epoch, by which the
controller and other brokers tell this life from an earlier one (KIP-380). After an expiry the
broker goes on serving; it registers anew, and then may become the controller again.

Source: `kafka.zk.KafkaZkClient.registerBroker`, `kafka.controller.KafkaController
.processRegisterBrokerAndReelect`, `kafka.server.KafkaServer.createBrokerInfo` (3.9).
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from broker.cluster.retried import Retried
from broker.controller.cluster_controller import ClusterController
from broker.membership.controller_fence import ControllerFence
from broker.zookeeper.session import SessionState
from config.listener import Listener
from storage.waits import Work

log = logging.getLogger(__name__)


class Registration:
    """This broker's node."""

    def __init__(
        self,
        *,
        register: Callable[[], Work[int]],
        fence: ControllerFence,
        candidate: ClusterController,
    ) -> None:
        """`register` makes the node and returns its epoch. Raises MetadataStoreError."""
        self._register = register
        self._fence = fence
        self._candidate = candidate
        self._expired = False
        self._again = Retried("Not registered as a broker yet")
        """An attempt may fail because the last session's node is still there."""

    async def begin(self) -> None:
        """Register for the first time. Raises MetadataStoreError."""
        self._fence.broker_epoch = await self._register()
        log.info("Registered as a broker, with epoch %d", self._fence.broker_epoch)

    def on_session(self, state: SessionState) -> None:
        """Note the session's new state; a watcher of the store's sessions."""
        if state is SessionState.EXPIRED:
            self._expired = True
            self._candidate.session_ended()
        elif state is SessionState.CONNECTED and self._expired:
            self._expired = False
            self._again.ask()

    async def run(self) -> None:
        """Register again whenever a session has ended, until ended."""
        await self._again.run(self._register_again)

    async def _register_again(self) -> None:
        self._fence.broker_epoch = await self._register()
        log.info("Registered as a broker again, with epoch %d", self._fence.broker_epoch)
        self._candidate.session_began()


def advertised_endpoints(
    advertised: tuple[Listener, ...], bound: Iterable[Listener], host_name: Callable[[], str]
) -> tuple[Listener, ...]:
    """Return where other brokers and clients find this one.

    The advertised listeners, else those that are `bound`; a port 0 becomes the one that was bound,
    a host that stands for all interfaces the machine's own name.
    """
    ports = {listener.name: listener.port for listener in bound}
    chosen = advertised or tuple(bound)
    return tuple(
        replace(
            one,
            host=host_name() if one.host in ("", "0.0.0.0", "::") else one.host,
            port=one.port or ports.get(one.name, 0),
        )
        for one in chosen
    )
