"""The half of javaproperties that a broker needs, and that the whole of it is there for others."""

import subprocess
import sys

from tests.support.installation import ROOT

QUESTIONS = """
import sys
from config import java_properties
assert java_properties.loads("a=b") == {"a": "b"}
assert java_properties.join_key_value("a b", "c") == "a\\\\ b=c"
assert issubclass(java_properties.InvalidUEscapeError, ValueError)
print("urllib.request" in sys.modules, "javaproperties" in sys.modules)
import javaproperties
assert javaproperties.loads_xml is not None
assert javaproperties.reading.loads is javaproperties.loads
print(javaproperties.loads("c=d"))
"""


def test_reading_a_properties_file_imports_no_http_client() -> None:
    found = subprocess.run(
        [sys.executable, "-c", QUESTIONS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines() == ["False False", "{'c': 'd'}"]
