"""The stubs of protocol/messages: as fresh as the declarations, and noticed by mypy."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import message_types
from tests.support.installation import ROOT

WRONG = """
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from protocol.messages.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse

def handler(request: EndTxnRequest) -> EndTxnResponse:
    response = EndTxnResponse()
    response.eror_code = 3  # E: "EndTxnResponse" has no attribute "eror_code"
    response.error_code = "3"  # E: Incompatible types in assignment
    response.error_code = request.comitted  # E: "EndTxnRequest" has no attribute "comitted"
    response.producer_id = None  # E: Incompatible types in assignment
    EndTxnResponse(eror_code=3)  # E: Unexpected keyword argument "eror_code"
    EndTxnResponse(3)  # E: Too many positional arguments
    ProduceResponse().responses.append(3)  # E: has no attribute "append"
    PartitionProduceResponse(record_errors=[3])  # E: List item 0 has incompatible type
    len(ProduceRequest().transactional_id)  # E: Argument 1 to "len" has incompatible type
    EndTxnRequest.codec(5).parse(b"").comitted  # E: has no attribute "comitted"
    return EndTxnResponse(error_code=3, producer_id=request.producer_id)
"""


def test_stubs_are_what_the_declarations_say() -> None:
    written = dict(message_types.stubs())
    found = set(message_types.MESSAGES.glob("*.pyi"))
    assert found == set(written), "scripts/message-types writes them; remove what it does not write"
    stale = [path.name for path, text in written.items() if path.read_text() != text]
    assert stale == [], "run scripts/message-types"


@pytest.mark.parametrize("stub", sorted(message_types.MESSAGES.glob("*.pyi")), ids=lambda p: p.stem)
def test_a_module_with_a_stub_declares_and_does_nothing_else(stub: Path) -> None:
    """mypy reads the stub and not the module: a function in there would never be checked."""
    source = stub.with_suffix(".py").read_text()
    assert not [line for line in source.splitlines() if line.startswith(("def ", "class "))]


def test_mypy_refuses_fields_that_are_not_declared(tmp_path: Path) -> None:
    snippet = tmp_path / "wrong.py"
    snippet.write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(snippet)]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout
    found = dict(re.findall(r"wrong\.py:(\d+): error: (.*)", said))
    expected = {
        str(number): line.split("# E: ")[1]
        for number, line in enumerate(WRONG.splitlines(), 1)
        if "# E: " in line
    }
    assert found.keys() == expected.keys(), said
    for number, text in expected.items():
        assert text in found[number]
