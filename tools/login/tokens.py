"""The source of OAUTHBEARER's tokens, by librdkafka's settings.

sasl.oauthbearer.method=oidc     from the issuer, at sasl.oauthbearer.token.endpoint.url, with
                                 the client's id and secret
default                          unsecured ones, made of sasl.oauthbearer.config: for trying
"""

import base64
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

from tools.errors import CommandError

TIMEOUT_S: Final = 15.0
LONGEST_ANSWER: Final = 1 << 20
_ENDPOINT: Final = "sasl.oauthbearer.token.endpoint.url"
_UNSECURED: Final = "sasl.oauthbearer.config"
_EXTENSION: Final = "extension_"


def token_of(settings: Mapping[str, Any], now_s: float) -> tuple[str, dict[str, str]]:
    """Return a token and the extensions to send with it. Raises CommandError."""
    if str(settings.get("sasl.oauthbearer.method", "default")).lower() == "oidc":
        extensions = str(settings.get("sasl.oauthbearer.extensions", ""))
        return _fetched(settings), dict(
            pair.partition("=")[::2] for pair in extensions.split(",") if pair
        )
    return _unsecured(str(settings.get(_UNSECURED, "")), now_s)


def _unsecured(config: str, now_s: float) -> tuple[str, dict[str, str]]:
    options = dict(pair.partition("=")[::2] for pair in config.split())
    user = options.get("principal")
    if not user:
        raise CommandError(
            f"OAUTHBEARER needs a token: sasl.oauthbearer.method=oidc with {_ENDPOINT}, or"
            f" {_UNSECURED}=principal=USER for an unsecured one"
        )
    claims: dict[str, Any] = {
        options.get("principalClaimName", "sub"): user,
        "iat": now_s,
        "exp": now_s + float(options.get("lifeSeconds", "3600")),
    }
    if "scope" in options:
        claims[options.get("scopeClaimName", "scope")] = options["scope"].split(",")
    extensions = {
        name.removeprefix(_EXTENSION): value
        for name, value in options.items()
        if name.startswith(_EXTENSION)
    }
    return f"{_part({'alg': 'none'})}.{_part(claims)}.", extensions


def _part(value: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _fetched(settings: Mapping[str, Any]) -> str:
    """The token that the issuer gives a client for its secret (RFC 6749, section 4.4)."""
    url = str(settings.get(_ENDPOINT, ""))
    if not url.startswith(("http://", "https://")):
        raise CommandError(f"{_ENDPOINT}={url}: an http: or https: URL")
    form = {"grant_type": "client_credentials"}
    scope = settings.get("sasl.oauthbearer.scope")
    if scope:
        form["scope"] = str(scope)
    client, secret = (
        urllib.parse.quote(str(settings.get(f"sasl.oauthbearer.client.{name}", "")), safe="")
        for name in ("id", "secret")
    )
    credentials = base64.b64encode(f"{client}:{secret}".encode()).decode()
    request = urllib.request.Request(
        url,
        urllib.parse.urlencode(form).encode(),
        {"Authorization": f"Basic {credentials}", "Accept": "application/json"},
    )
    authorities = settings.get("https.ca.location")
    try:
        context = ssl.create_default_context(cafile=authorities)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context) as answer:
            told = json.loads(answer.read(LONGEST_ANSWER))
        return str(told["access_token"])
    except urllib.error.HTTPError as error:
        raise CommandError(f"the issuer at {url} gives no token: {error}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "reason", None) or error
        raise CommandError(f"the issuer at {url} cannot be asked for a token: {reason}") from None
