"""The authentication of connections: SASL, as Kafka's `SaslServerAuthenticator` speaks it.

`listeners` makes a `SaslListener` for each listener that authenticates, which gives every one of
its connections an `Authenticator`: a state machine (`states`) whose events are requests and
messages, and which knows neither stream nor frames. A `Mechanism` (`mechanisms/`) interprets the
messages and checks their proof; its `Exchange` is one attempt. `outcomes` has the results,
`statistics` the counters.
"""
