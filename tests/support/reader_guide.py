"""docs/reader.md as a program of all its examples in order."""

import re

from tests.support.installation import ROOT

EXAMPLE_DIRECTORY = "/tmp/kafka-logs"


def guide_program(log_dir: str) -> str:
    """Return the program, which reads `log_dir`."""
    text = (ROOT / "docs/reader.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return "\n".join(blocks).replace(EXAMPLE_DIRECTORY, log_dir)
