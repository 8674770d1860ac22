"""The messages of clients and brokers within SASL, mechanism by mechanism. Pure.

`plain` (RFC 4616), `scram` and `scram_messages` (RFC 5802, RFC 7677), `oauthbearer` (RFC 7628).
Both sides are here: the broker parses what clients build, and brokers and the command line are
clients themselves (`conversations`). Each file names what is Kafka's own.
"""

from typing import Final

LONGEST: Final = 16 * 1024
"""Bytes of the longest message of PLAIN and SCRAM: longer ones are refused unread."""


class MalformedMessage(ValueError):
    """The bytes are no message of the mechanism. The broker may show the text to their sender."""
