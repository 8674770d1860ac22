"""Avro values whose schemas are in a registry: `consume --avro`.

`registry` gets schemas from Confluent's HTTP API, `decoding` turns values framed with a schema's id
into JSON. fastavro is imported when a command runs; without it the command says what to install.
"""
