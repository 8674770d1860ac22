"""`pykafkalog produce`: lines of standard input or files become records.

`command` has the arguments; `lines` makes records of lines and says which line was bad; `delivery`
sends them and counts what was acknowledged; `transactions` does so all or nothing.
"""

from tools.produce.command import add_parser

__all__ = ["add_parser"]
