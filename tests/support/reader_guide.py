"""docs/reader.md as a program: all its examples, one behind the other."""

import re

from tests.support.installation import ROOT

EXAMPLE_DIRECTORY = "/tmp/kafka-logs"


def guide_program(log_dir: str) -> str:
    """The program, reading `log_dir`."""
    text = (ROOT / "docs/reader.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return "\n".join(blocks).replace(EXAMPLE_DIRECTORY, log_dir)
