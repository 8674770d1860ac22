"""`pykafkalog sql`: DuckDB queries over topics, read from the files without a broker."""

from tools.sql.command import add_parser

__all__ = ["add_parser"]
