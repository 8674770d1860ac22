"""Who a connection belongs to: SASL, as Kafka's `SaslServerAuthenticator` speaks it.

`listeners` makes a `SaslListener` for each listener that authenticates, which gives every one of
its connections an `Authenticator`: a state machine (`states`) that is told of requests and messages
and knows neither stream nor frames. What a message means, and whether it proves anything, is a
`Mechanism`'s (`mechanisms/`), whose `Exchange` is one attempt. `outcomes` are what comes of it,
`statistics` what is counted.
"""
