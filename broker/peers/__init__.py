"""This broker as a client of others: a connection to a broker, on which requests are pipelined.

    peer = peers.to(2, endpoint, "broker-1-fetcher-0")
    response = await peer.ask(ApiKey.FETCH, request, timeout_s=30)

* `peer`: what users of the room see, `Peer` and `PeerError`.
* `peers`: all connections of this broker, and the nursery that their tasks live in.
* `broker_peer`: one peer's life: connect when somebody asks, back off after failures, end.
* `opening`: what comes before the first request: dial, TLS, ApiVersions, SASL.
* `connection`: an open connection: requests out in order, replies back in the same order.
* `asked`: one request, from the asking to its reply. `frames`: bytes to frames, in few copies.
* `security`: TLS and credentials of the listener between brokers, from the configuration.

Who asks waits in the house's form (`storage.waits`); trio is in here only, where a task per
connection receives, and another one sends what the kernel did not take at once. A request costs no
task. After Kafka's `NetworkClient`, `BrokerBlockingSender` and `InterBrokerSendThread`.
"""
