"""`pykafkalog perf`: how fast a broker is, as one client sees it.

`command` has the arguments; `producing`, `consuming` and `end_to_end` do the work and hand what
they see to a `Measure`; `results` says what that comes to; `report` prints it, `plot` draws it.
"""

from tools.perf.command import add_parser

__all__ = ["add_parser"]
