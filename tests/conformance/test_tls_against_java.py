"""Names, mapping rules and stores: what Java and Kafka's own classes make of the same.

Names are drawn, with every kind of string and every sign that Java escapes; stores are keytool's.
"""

import base64
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID, ObjectIdentifier

from tests.support.kafka_jars import java
from tls.authority import Authority
from tls.names import distinguished_name, name_in_java
from tls.principals import NoRule, PrincipalRules
from tls.problems import TlsProblem
from tls.settings import KeyStoreSettings, TrustStoreSettings
from tls.stores import load_key_store, load_trust_store

pytestmark = pytest.mark.conformance

ORACLE = Path(__file__).with_name("TlsOracle.java")
KINDS = (
    *(NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME),
    *(NameOID.LOCALITY_NAME, NameOID.STATE_OR_PROVINCE_NAME, NameOID.STREET_ADDRESS),
    *(NameOID.DOMAIN_COMPONENT, NameOID.USER_ID, NameOID.EMAIL_ADDRESS, NameOID.SERIAL_NUMBER),
    *(NameOID.GIVEN_NAME, NameOID.TITLE, ObjectIdentifier("1.3.6.1.4.1.99999.130.1")),
)
TYPES = (_ASN1Type.UTF8String, _ASN1Type.PrintableString, _ASN1Type.IA5String, _ASN1Type.T61String)
SIGNS = "ab cZ09,+\"\\<>;=# -.'()/:?\r*@_äß中😀"
RULES = (
    "DEFAULT",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/",
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, DEFAULT",
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U,RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT",
    "RULE:^.*$/anybody/",
    r"RULE:^CN=(.*?),.*$/a\/b$1\$x/",
    "RULE:CN=([^,]+)(,.*)?/$1-$2/",
    "RULE:.*(b)?.*/$1x/ , DEFAULT",
    "RULE:^CN=(.)(.*)/$2$11/",
    "",
    " DEFAULT ,",
    "nonsense",
    "RULE:a/b",
    "DEFAULT/L",
    "RULE:^CN=.*/$1/",
)
NAMES = (
    "CN=Duke,OU=ServiceUsers,O=Org,C=US",
    "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US",
    "cn=duke,ou=sme,dc=mycp,dc=com",
    "CN=a b\\, c,O=x",
    "CN=b",
    "",
)


def ask(questions: Sequence[str]) -> list[str | None]:
    output = java(str(ORACLE), stdin="".join(f"{line}\n" for line in questions)).stdout
    answers = output.splitlines()
    assert len(answers) == len(questions), output
    return [None if line == "!" else base64.b64decode(line).decode() for line in answers]


def encoded(data: str | bytes) -> str:
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()


def drawn_name(random: Random) -> x509.Name:
    def part() -> x509.NameAttribute:
        text = "".join(random.choice(SIGNS) for _ in range(random.randint(1, 12)))
        kind = random.choice(TYPES)
        if kind is not _ASN1Type.UTF8String:
            text = text.encode("ascii", "ignore").decode() or "x"
        return x509.NameAttribute(random.choice(KINDS), text, _type=kind, _validate=False)

    def relative() -> x509.RelativeDistinguishedName:
        parts = {one.oid: one for one in (part() for _ in range(random.choice((1, 1, 1, 2, 3))))}
        return x509.RelativeDistinguishedName(parts.values())

    return x509.Name([relative() for _ in range(random.randint(0, 5))])


def test_s_tls_1_names_are_printed_as_java_prints_them() -> None:
    random = Random(5)
    names = [drawn_name(random).public_bytes() for _ in range(3000)]
    theirs = ask([f"name {encoded(der)}" for der in names])
    compared = [
        (t, name_in_java(der)) for t, der in zip(theirs, names, strict=True) if t is not None
    ]
    assert len(compared) > 2500
    assert [pair for pair in compared if pair[0] != pair[1]] == []


def test_s_tls_2_rules_map_names_as_kafkas_do() -> None:
    questions = [(rules, name) for rules in RULES for name in NAMES]
    theirs = ask([f"map {encoded(rules)} {encoded(name)}" for rules, name in questions])

    def ours(rules: str, name: str) -> str | None:
        try:
            return PrincipalRules(rules).name(name)
        except (NoRule, TlsProblem):
            return None

    mine = [ours(rules, name) for rules, name in questions]
    assert [
        (question, our, their)
        for question, our, their in zip(questions, mine, theirs, strict=True)
        if our != their
    ] == []


def keytool(*words: str) -> None:
    subprocess.run(["keytool", *words], check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
@pytest.mark.parametrize("named", ["JKS", "PKCS12"])
@pytest.mark.parametrize("algorithm", ["RSA", "EC"])
def test_stores_of_keytool_are_read(tmp_path: Path, kind: str, named: str, algorithm: str) -> None:
    store = str(tmp_path / "store")
    own = ("-keystore", store, "-storetype", kind, "-storepass", "secret1", "-keypass", "secret1")
    keytool(
        *("-genkeypair", "-alias", "broker", "-keyalg", algorithm, "-validity", "30", *own),
        *("-dname", "CN=broker,OU=a b,O=Org,C=DE", "-ext", "san=dns:localhost"),
    )
    settings = KeyStoreSettings(type=named, location=store, password="secret1")
    found = load_key_store(settings, lambda path: Path(path).read_bytes())
    assert distinguished_name(found.leaf) == "CN=broker,OU=a b,O=Org,C=DE"
    assert found.key.public_key() == found.leaf.public_key()

    ca = Authority.new(time.time(), 1).identity
    (tmp_path / "ca.pem").write_bytes(ca.certificate_pem())
    trust = str(tmp_path / "trust")
    keytool(
        *("-importcert", "-noprompt", "-alias", "ca", "-file", str(tmp_path / "ca.pem")),
        *("-keystore", trust, "-storetype", kind, "-storepass", "secret2"),
    )
    trusted = TrustStoreSettings(type=named, location=trust, password="secret2")
    assert load_trust_store(trusted, lambda path: Path(path).read_bytes()) == (ca.certificate,)
