"""`pykafkalog certificates` makes files that a broker and clients take, and never replaces one."""

import os
import time
from pathlib import Path

import pytest
from cryptography import x509

from config.broker_config import BrokerConfig
from config.properties import load_properties
from tests.support.certificates import shaken
from tests.support.command_line import Command
from tools.client_properties import for_librdkafka
from tools.dialing import client_context_of


def lines_of(printed: str, heading: str) -> dict[str, str]:
    """The settings of the paragraph with this heading."""
    (paragraph,) = (p for p in printed.split("\n\n") if p.lstrip().startswith(f"# {heading}"))
    return load_properties(paragraph)


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_files_are_their_owners_and_signed_by_the_authority(
    tmp_path: Path, command: Command
) -> None:
    directory = tmp_path / "new" / "tls"
    command(
        "certificates", directory, "--client", "alice", "--client", "bob", "--host", "a.example"
    )
    names = {"ca.pem", "ca.key", "broker.pem", "alice.pem", "bob.pem"}
    assert {path.name for path in directory.iterdir()} == names
    for name in names - {"ca.pem"}:
        assert os.stat(directory / name).st_mode & 0o077 == 0, name
    authority = certificate(directory / "ca.pem")
    for name in ("broker", "alice", "bob"):
        certificate(directory / f"{name}.pem").verify_directly_issued_by(authority)


def test_run_again_it_adds_and_replaces_nothing(tmp_path: Path, command: Command) -> None:
    command("certificates", tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    printed = command("certificates", tmp_path, "--client", "carol").out
    assert f"kept  {tmp_path / 'broker.pem'}" in printed
    assert f"wrote {tmp_path / 'carol.pem'}" in printed
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert before.items() <= after.items()
    certificate(tmp_path / "carol.pem").verify_directly_issued_by(certificate(tmp_path / "ca.pem"))


def test_a_certificate_that_is_kept_is_for_the_hosts_that_are_named(
    tmp_path: Path, command: Command
) -> None:
    command("certificates", tmp_path, "--host", "a.example", "--host", "10.0.0.5")
    for words in ([], ["--host", "10.0.0.5", "--host", "a.example"]):
        printed = command("certificates", tmp_path, *words).out
        first = words[1] if words else "a.example"
        settings = lines_of(printed, "server.properties")
        assert settings["advertised.listeners"] == f"SSL://{first}:9093"
    told = command("certificates", tmp_path, "--host", "b.example", code=1).err
    assert "broker.pem is for a.example, 10.0.0.5, and not for b.example: remove it" in told


def test_the_printed_lines_do_for_a_broker_and_a_client(tmp_path: Path, command: Command) -> None:
    from broker.network.tls_listeners import tls_settings
    from tls.contexts import server_context
    from tls.store_files import read_store_file

    printed = command(
        "certificates", tmp_path, "--client", "alice", "--port", "7777", "--days", "5"
    ).out
    config = BrokerConfig.parse(lines_of(printed, "server.properties"))
    assert str(config.advertised_listeners[0]) == "SSL://localhost:7777"
    settings = tls_settings(config, config.listeners[0])
    served = server_context(settings, read_store_file, round(time.time() * 1000))
    client = client_context_of(for_librdkafka(lines_of(printed, "client.properties")))
    end, _ = shaken(served.context, client)
    assert end.getpeercert(True)
    assert config.ssl_principal_mapping_rules.startswith("RULE:^CN=([^,]+),.*$/$1/")
    assert str(tmp_path / "alice.pem") in printed.partition("# kafka-python")[2]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--client", "a/b"], "a name has letters"),
        (["--client", "ca"], "ca.pem is another file's name"),
        (["--host", "bad host"], "--host 'bad host': a name or address"),
        (["--host", ""], "--host '': a name or address"),
        (["--days", "0"], "at least one"),
        (["--days", "36526"], "at most 36525"),
    ],
)
def test_what_cannot_be_made_is_told(
    words: list[str], text: str, tmp_path: Path, command: Command
) -> None:
    assert text in command("certificates", tmp_path / "x", *words, code=1).err


def test_half_an_authority_is_none(tmp_path: Path, command: Command) -> None:
    command("certificates", tmp_path)
    (tmp_path / "ca.key").unlink()
    assert "one is missing" in command("certificates", tmp_path, code=1).err
    (tmp_path / "ca.key").write_text("nonsense")
    assert "are no authority" in command("certificates", tmp_path, code=1).err
