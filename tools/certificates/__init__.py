"""`pykafkalog certificates`: PEM files for trying TLS, and what to do with them."""

from tools.certificates.command import add_parser, run

__all__ = ["add_parser", "run"]
