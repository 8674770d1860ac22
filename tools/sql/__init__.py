"""`pykafkalog sql`: queries over topics, read from the files by DuckDB. No broker is asked."""

from tools.sql.command import add_parser

__all__ = ["add_parser"]
