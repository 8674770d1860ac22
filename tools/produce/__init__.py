"""`pykafkalog produce`: lines of standard input or files become records.

`command` has the arguments. `lines` parses lines to records and names a bad line, `delivery` sends
records and counts the acknowledged ones, `transactions` sends them in transactions.
"""

from tools.produce.command import add_parser

__all__ = ["add_parser"]
