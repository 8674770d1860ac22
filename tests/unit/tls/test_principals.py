"""`ssl.principal.mapping.rules`; tests/conformance/test_tls_against_java.py asks Kafka itself."""

import pytest

from tls.principals import NoRule, PrincipalRules
from tls.problems import TlsProblem

DUKE = "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US"
"""Examples of Kafka's documentation."""


@pytest.mark.parametrize(
    ("rules", "name", "user"),
    [
        ("DEFAULT", DUKE, DUKE),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=x,OU=ServiceUsers,O=Org", "x"),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L", DUKE, "duke@sme"),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U", DUKE, "DUKE"),
        ("RULE:^CN=x,.*$/x/,DEFAULT", DUKE, DUKE),
        (r"RULE:^CN=(.*?),.*$/a\/b\$$1/", DUKE, "a/b$Duke"),
        ("RULE:^CN=(.)(.*)$/$2$11/", "CN=ab", "ba1"),
        ("RULE:CN=([^,]+)/$1/, RULE:^(.*)$/other/", DUKE, "other"),
    ],
)
def test_s_tls_2_the_first_rule_that_matches_the_whole_name_gives_the_user(
    rules: str, name: str, user: str
) -> None:
    assert PrincipalRules(rules).name(name) == user


def test_s_tls_2_a_name_that_matches_no_rule_is_nobody() -> None:
    with pytest.raises(NoRule, match="No rules apply to CN=b"):
        PrincipalRules("RULE:^CN=a$/a/").name("CN=b")
    with pytest.raises(NoRule):
        PrincipalRules("").name("CN=b")


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        ("nonsense", "Invalid rule: `nonsense`, unmatched substring: `nonsense`"),
        ("DEFAULT/L", "unmatched substring: `/L`"),
        ("RULE:(/x/", "is no regular expression"),
        ("RULE:a/$1/", "names a group that its pattern has not"),
    ],
)
def test_s_tls_2_a_rule_that_is_none_is_refused(rules: str, text: str) -> None:
    with pytest.raises(TlsProblem) as caught:
        PrincipalRules(rules)
    assert text in str(caught.value)
