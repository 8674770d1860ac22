"""`pykafkalog acls`: who may do what with which resources, and which rule says so.

`command` has the arguments, `words` turns them into rules and filters, `rules` asks a broker,
`explanation` judges (pure), `listing` prints.
"""

from tools.acls.command import add_parser

__all__ = ["add_parser"]
