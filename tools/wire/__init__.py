"""Requests that client libraries have no function for, built from `protocol.messages`.

`link` is a connection to one broker, `brokers` a cluster's brokers, `offsets` asks for offsets,
`refusals` turns error codes into sentences. It uses plain sockets: if `security.protocol` asks for
TLS or SASL, the command says that it cannot do it (decision 70).
"""
