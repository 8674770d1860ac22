"""Avro values whose schemas are in a registry: `consume --avro`.

`registry` asks Confluent's HTTP API for schemas, `decoding` makes JSON of what is framed with their
ids. fastavro is imported when a command runs; without it the command says what to install.
"""
