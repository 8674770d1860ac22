"""Requests that no client library has a function for: Kafka's own, built from `protocol`.

`link` is one connection to one broker, `brokers` a cluster of them, `refusals` what a broker that
refuses is told as. Plain sockets: where `security.protocol` asks for TLS or SASL it cannot be done,
and the command says so.
"""
