import pytest

from config.jaas import PLAIN_MODULE, JaasError, LoginModule, parse_jaas


def options(text: str) -> dict[str, str]:
    return dict(parse_jaas(f"{PLAIN_MODULE} required {text};").options)


def test_a_login_module_with_its_options() -> None:
    module = parse_jaas(f"{PLAIN_MODULE} required\n  user_alice=\"a b\" user_bob='c';\n")
    assert module == LoginModule(PLAIN_MODULE, {"user_alice": "a b", "user_bob": "c"})


@pytest.mark.parametrize("flag", ["required", "REQUISITE", "Sufficient", "optional"])
def test_every_control_flag_of_java_is_known(flag: str) -> None:
    assert parse_jaas(f"a.B {flag};") == LoginModule("a.B", {})


def test_a_word_needs_no_quotes() -> None:
    assert options("a=b-c_d$e.f1 tokenauth=true ü=é") == {
        "a": "b-c_d$e.f1",
        "tokenauth": "true",
        "ü": "é",
    }


def test_escapes_are_those_of_java() -> None:
    assert options(r'a="\"\\\n\101\x" b="it\'s"') == {"a": '"\\\nAx', "b": "it's"}


def test_signs_within_quotes_mean_nothing() -> None:
    assert options('a="; = // /* ,"') == {"a": "; = // /* ,"}


def test_comments_are_skipped() -> None:
    assert options("/* a=b */ c=d // e=f\n / g=h\n i=j") == {"c": "d", "i": "j"}


def test_the_last_of_two_equal_options_counts() -> None:
    assert options('a="1" a="2"') == {"a": "2"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Login module not specified in JAAS config"),
        ("  // nothing", "Login module not specified in JAAS config"),
        ("a.B", "Login module control flag not specified in JAAS config"),
        ("a.B 1;", "Login module control flag is not available in the JAAS config"),
        ("a.B always;", "Invalid login module control flag 'always' in JAAS config"),
        ("a.B required", "JAAS config entry not terminated by semi-colon"),
        ("a.B required c=d", "JAAS config entry not terminated by semi-colon"),
        ("a.B required c;", "Value not specified for key 'c' in JAAS config: values stand in"),
        ("a.B required c=;", "Value not specified for key 'c' in JAAS config: values stand in"),
        ("a.B required c=1;", "Value not specified for key 'c' in JAAS config: values stand in"),
        ("a.B required; c.D required;", "JAAS config property contains 2 login modules, should be"),
    ],
)
def test_errors_have_the_words_of_kafkas(text: str, message: str) -> None:
    with pytest.raises(JaasError) as caught:
        parse_jaas(text)
    assert str(caught.value).startswith(message)


def test_options_are_not_shown() -> None:
    assert "secret" not in repr(parse_jaas('a.B required user_a="secret";'))
