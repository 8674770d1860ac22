"""SASL settings of Java's clients, in librdkafka's names.

    sasl.jaas.config                 user and password of PLAIN and SCRAM; what unsecured tokens of
                                     OAUTHBEARER say; client id and secret for the issuer
    sasl.oauthbearer.client.credentials.…, sasl.oauthbearer.token.endpoint.url
                                     a token from the issuer

Settings that only Java knows, such as classes and the renewal of logins, are left out.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from config.jaas import OAUTH_MODULE, PLAIN_MODULE, SCRAM_MODULE, JaasError, parse_jaas
from tools.errors import CommandError

_JAAS: Final = "sasl.jaas.config"
_ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
_METHOD: Final = "sasl.oauthbearer.method"
_ONLY_JAVAS: Final = re.compile(
    r"sasl\.login\..*|sasl\.client\.callback\.handler\.class"
    r"|sasl\.kerberos\.ticket\..*"
    r"|sasl\.oauthbearer\.(?:allow|clock|expected|jwks|jwt|header|iat|scope\.claim)\..*"
    r"|sasl\.oauthbearer\.assertion\.template\.file"
)
_CREDENTIALS: Final = {
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
_OF_THE_ISSUER: Final = {
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
}
_UNSECURED: Final = {
    "unsecuredLoginStringClaim_sub": "principal",
    "unsecuredLoginPrincipalClaimName": "principalClaimName",
    "unsecuredLoginLifetimeSeconds": "lifeSeconds",
    "unsecuredLoginScopeClaimName": "scopeClaimName",
    "unsecuredLoginStringClaim_scope": "scope",
}
_UNSECURED_EXTENSION: Final = "unsecuredLoginExtension_"


def in_librdkafkas_names(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings. Raises CommandError for a text of JAAS that cannot be used."""
    kept = {name: value for name, value in settings.items() if not _ONLY_JAVAS.fullmatch(name)}
    for javas, name in _CREDENTIALS.items():
        if javas in kept:
            kept[name] = kept.pop(javas)
    if _ENDPOINT in kept:
        kept.setdefault(_METHOD, "oidc")
    text = kept.pop(_JAAS, None)
    return kept if text is None else _of_jaas(str(text), kept) | kept


def _of_jaas(text: str, settings: Mapping[str, Any]) -> dict[str, str]:
    try:
        module = parse_jaas(text)
    except JaasError as error:
        raise CommandError(f"{_JAAS}: {error}") from None
    options = module.options
    if module.name in (PLAIN_MODULE, SCRAM_MODULE):
        if options.get("tokenauth", "").lower() == "true":
            raise CommandError(f"{_JAAS}: commands cannot log in by a delegation token (tokenauth)")
        return {
            f"sasl.{name}": options[name] for name in ("username", "password") if name in options
        }
    if module.name != OAUTH_MODULE:
        raise CommandError(f"{_JAAS}: commands know nothing of {module.name}")
    if str(settings.get(_METHOD, "")).lower() == "oidc":
        extensions = ",".join(
            f"{name.removeprefix('extension_')}={value}"
            for name, value in options.items()
            if name.startswith("extension_")
        )
        found = {new: options[old] for old, new in _OF_THE_ISSUER.items() if old in options}
        return found | ({"sasl.oauthbearer.extensions": extensions} if extensions else {})
    return {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": " ".join(_unsecured(options)),
    }


def _unsecured(options: Mapping[str, str]) -> Iterator[str]:
    for name, value in options.items():
        if name.startswith(_UNSECURED_EXTENSION):
            new = f"extension_{name.removeprefix(_UNSECURED_EXTENSION)}"
        elif name in _UNSECURED:
            new = _UNSECURED[name]
        else:
            continue
        if re.search(r"\s", value):
            raise CommandError(f"{_JAAS}: {name} has a blank, which librdkafka cannot have there")
        yield f"{new}={value}"
