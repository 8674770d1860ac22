"""`python -m pykafkalog`: the command line, as `pykafkalog`."""

import sys

from pykafkalog.commands import command_line

sys.exit(command_line())
