"""This broker as a client of others: a connection to a broker, on which requests are pipelined.

    peer = peers.to(2, endpoint, "broker-1-fetcher-0")
    response = await peer.ask(ApiKey.FETCH, request, timeout_s=30)

* `peer`: the interface for other rooms, `Peer` and `PeerError`.
* `peers`: all connections of this broker, and the nursery that their tasks live in.
* `broker_peer`: one peer's life: connect for the first request, back off after failures, end.
* `opening`: the steps before the first request: dial, TLS, ApiVersions, SASL.
* `connection`: an open connection: requests out in order, replies back in the same order.
* `asked`: one request, from `ask` to its reply. `frames`: bytes to frames, in few copies.
* `security`: TLS and credentials of the listener between brokers, from the configuration.

A caller of `ask` waits in the house's form (`storage.waits`). Inside, trio's tasks run: one per
connection receives, and another one sends the bytes that the kernel did not take at once. A request
costs no task. After Kafka's `NetworkClient`, `BrokerBlockingSender` and `InterBrokerSendThread`.
"""
