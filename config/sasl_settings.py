"""SASL settings of the listeners that authenticate by it, and of this broker's login to others.

A key of one mechanism is `listener.name.<listener>.<mechanism>.<key>`, listener and mechanism in
lower case. Most of these keys may be set without the mechanism, for all of a listener's, or plainly
for all listeners; `sasl.jaas.config` and `sasl.server.callback.handler.class` may not, as in Kafka.
Whatever cannot be served is refused in one line: Kerberos, Java classes, and settings that would
let anybody in (decision 96). After Kafka's `SaslChannelBuilder` and its OAUTHBEARER classes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from config.broker_keys import BROKER_KEYS
from config.definition import ConfigError, Password
from config.jaas import (
    OAUTH_MODULE,
    PLAIN_MODULE,
    SCRAM_MODULE,
    JaasError,
    LoginModule,
    parse_jaas,
)
from config.listener import Listener

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = (PLAIN, *SCRAM, OAUTHBEARER)
"""The mechanisms that this broker has."""

_CHECK: Final = "sasl.server.callback.handler.class"
_JAAS: Final = "sasl.jaas.config"
_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_VALIDATOR: Final = "sasl.oauthbearer.jwt.validator.class"
_CLAIMS: Final = {
    "aud": ("sasl.oauthbearer.expected.audience", "sasl.oauthbearer.allow.unverified.audience"),
    "iss": ("sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.allow.unverified.issuer"),
}
"""Claims that must be verified, and the keys that say how, or that they need not be."""
_SECURITY: Final = "org.apache.kafka.common.security."
_SECURED: Final = frozenset(
    (
        _SECURITY + "oauthbearer.OAuthBearerValidatorCallbackHandler",
        _SECURITY + "oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
    )
)
_UNSECURED: Final = (
    _SECURITY + "oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
_KAFKAS_CHECK: Final = {
    PLAIN: _SECURITY + "plain.internals.PlainServerCallbackHandler",
    **dict.fromkeys(SCRAM, _SECURITY + "scram.internals.ScramServerCallbackHandler"),
}
_VALIDATORS: Final = frozenset(
    _SECURITY + "oauthbearer." + name for name in ("DefaultJwtValidator", "BrokerJwtValidator")
)
_PYTHON: Final = re.compile(r"[\w.]+:\w+\Z")
_USER: Final = "user_"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainSettings:
    """PLAIN: users of the configuration, or a function that checks passwords."""

    users: Mapping[str, Password]
    check: str | None
    """`module:function`, which is called instead of looking at the users."""


@dataclass(frozen=True, slots=True)
class ScramSettings:
    """SCRAM: credentials are in the metadata store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuredTokens:
    """OAUTHBEARER with signed tokens."""

    jwks_url: str
    audiences: tuple[str, ...]
    """Empty: any."""
    issuer: str | None
    """None: any."""
    clock_skew_s: int
    scope_claim: str
    user_claim: str
    refresh_ms: int
    backoff_ms: int
    most_backoff_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsecuredTokens:
    """OAUTHBEARER with tokens that anybody can make."""

    user_claim: str
    scope_claim: str
    required_scope: tuple[str, ...]
    clock_skew_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismSettings:
    """One mechanism of one listener."""

    name: str
    max_reauth_ms: int
    """How long a session lasts; 0: for ever, or as long as its credentials."""
    how: PlainSettings | ScramSettings | SecuredTokens | UnsecuredTokens


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """One listener that authenticates by SASL."""

    mechanisms: tuple[MechanismSettings, ...]
    """The mechanisms, in the order in which the listener offers them."""
    max_receive_bytes: int
    """The greatest size of a request before the connection has authenticated, in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSettings:
    """The credentials with which this broker logs in to others."""

    mechanism: str
    user: str
    password: Password


def login_settings(
    listener: Listener, values: Mapping[str, Any], props: Mapping[str, str]
) -> LoginSettings:
    """Return the credentials for the listener of other brokers that has the same name.

    They are `sasl.mechanism.inter.broker.protocol` and the `username` and `password` of that
    mechanism's `sasl.jaas.config`, as in Kafka. Raises ConfigError.
    """
    keys = _Keys(listener, values, props)
    name = values["sasl.mechanism.inter.broker.protocol"]
    if name != PLAIN and name not in SCRAM:
        raise ConfigError(
            f"sasl.mechanism.inter.broker.protocol is {name}, and brokers speak to each other over"
            f" listener {listener}: set it to one of {', '.join((PLAIN, *SCRAM))}"
        )
    login = _login(name, PLAIN_MODULE if name == PLAIN else SCRAM_MODULE, keys)
    options = {} if login is None else login.options
    if not options.get("username") or "password" not in options:
        raise ConfigError(
            f"{keys.name(name, _JAAS)} needs username and password: as whom this broker logs in to"
            f" others over listener {listener}"
        )
    return LoginSettings(
        mechanism=name, user=options["username"], password=Password(options["password"])
    )


def sasl_settings(
    listener: Listener, values: Mapping[str, Any], props: Mapping[str, str]
) -> SaslSettings:
    """Return what a listener offers. `props` are the texts that the operator set, `values` those of
    all keys, parsed. Raises ConfigError.
    """
    keys = _Keys(listener, values, props)
    names = tuple(dict.fromkeys(keys.of_listener("sasl.enabled.mechanisms")))
    own = f"{keys.prefix}sasl.enabled.mechanisms"
    if not names:
        raise ConfigError(f"Listener {listener} offers no SASL mechanism: set {own}")
    for name in names:
        if name not in MECHANISMS:
            raise ConfigError(_unknown(listener, name, own))
    return SaslSettings(
        mechanisms=tuple(_mechanism(name, keys) for name in names),
        max_receive_bytes=keys.of_listener("sasl.server.max.receive.size"),
    )


def _unknown(listener: Listener, name: str, own: str) -> str:
    if name == "GSSAPI":
        name = "GSSAPI (Kerberos), Kafka's default"
    return (
        f"Listener {listener} would offer the SASL mechanism {name}, which this broker does not"
        f" have: set {own} to some of {','.join(MECHANISMS)}"
    )


class _Keys:
    """The keys of one listener."""

    def __init__(
        self, listener: Listener, values: Mapping[str, Any], props: Mapping[str, str]
    ) -> None:
        self.listener = listener
        self.prefix = f"listener.name.{listener.name.lower()}."
        self._values = values
        self._props = props

    def of_listener(self, key: str) -> Any:
        """The listener's value, or the one for all listeners."""
        text = self._props.get(self.prefix + key)
        return self._values[key] if text is None else BROKER_KEYS[key].parse(text)

    def of_mechanism(self, mechanism: str, key: str) -> Any:
        """The mechanism's value, or the listener's, or the one for all listeners."""
        own = self.only_mechanism(mechanism, key)
        return self.of_listener(key) if own is None else own

    def only_mechanism(self, mechanism: str, key: str) -> Any:
        """The mechanism's value; None if it has none of its own."""
        text = self._props.get(self.name(mechanism, key))
        return None if text is None else BROKER_KEYS[key].parse(text)

    def name(self, mechanism: str, key: str) -> str:
        """The full name of a mechanism's key."""
        return f"{self.prefix}{mechanism.lower()}.{key}"


def _mechanism(name: str, keys: _Keys) -> MechanismSettings:
    how: PlainSettings | ScramSettings | SecuredTokens | UnsecuredTokens
    if name == PLAIN:
        how = _plain(keys)
    elif name in SCRAM:
        _login(name, SCRAM_MODULE, keys)
        _refuse_other_checks(name, keys)
        how = ScramSettings()
    else:
        how = _tokens(keys)
    max_reauth_ms = keys.of_mechanism(name, "connections.max.reauth.ms")
    return MechanismSettings(name=name, max_reauth_ms=max(max_reauth_ms, 0), how=how)


def _login(mechanism: str, module: str, keys: _Keys) -> LoginModule | None:
    """Return the mechanism's JAAS configuration; None if it has none. Raises ConfigError."""
    text = keys.only_mechanism(mechanism, _JAAS)
    if text is None:
        return None
    name = keys.name(mechanism, _JAAS)
    try:
        login = parse_jaas(text.value)
    except JaasError as error:
        raise ConfigError(f"Invalid value {text} for configuration {name}: {error}") from None
    if login.name != module:
        raise ConfigError(
            f"Invalid value {text} for configuration {name}: the login module of {mechanism} is"
            f" {module}, and this broker loads no other"
        )
    return login


def _refuse_other_checks(mechanism: str, keys: _Keys) -> None:
    named = keys.only_mechanism(mechanism, _CHECK)
    if named not in (None, _KAFKAS_CHECK[mechanism]):
        raise _java_class(keys.name(mechanism, _CHECK), named)


def _java_class(key: str, named: str) -> ConfigError:
    return ConfigError(
        f"Invalid value {named} for configuration {key}: this broker runs no Java classes; take the"
        " line out, or see docs/security.md for what it can use instead"
    )


def _plain(keys: _Keys) -> PlainSettings:
    check = keys.only_mechanism(PLAIN, _CHECK)
    if check == _KAFKAS_CHECK[PLAIN]:
        check = None
    if check is not None and not _PYTHON.match(check):
        raise _java_class(keys.name(PLAIN, _CHECK), check)
    login = _login(PLAIN, PLAIN_MODULE, keys)
    if login is None and check is None:
        raise ConfigError(
            f"Listener {keys.listener} offers PLAIN and knows no user: set"
            f' {keys.name(PLAIN, _JAAS)}={PLAIN_MODULE} required user_NAME="PASSWORD";'
        )
    options = {} if login is None else login.options
    return PlainSettings(
        users={
            option.removeprefix(_USER): Password(value)
            for option, value in options.items()
            if option.startswith(_USER)
        },
        check=check,
    )


def _tokens(keys: _Keys) -> SecuredTokens | UnsecuredTokens:
    check = keys.only_mechanism(OAUTHBEARER, _CHECK)
    login = _login(OAUTHBEARER, OAUTH_MODULE, keys)
    if check == _UNSECURED:
        return _unsecured({} if login is None else login.options, keys)
    if check is not None and check not in _SECURED:
        raise _java_class(keys.name(OAUTHBEARER, _CHECK), check)
    return _secured(keys)


def _secured(keys: _Keys) -> SecuredTokens:
    def of(key: str) -> Any:
        return keys.of_mechanism(OAUTHBEARER, key)

    url = of(_URL)
    if not url:
        raise ConfigError(
            f"Listener {keys.listener} offers OAUTHBEARER and has no keys to verify tokens with:"
            f" set {keys.name(OAUTHBEARER, _URL)}. Tokens that anybody can make are accepted only"
            f" if {keys.name(OAUTHBEARER, _CHECK)} is {_UNSECURED}"
        )
    if not url.startswith(("https://", "http://", "file:")):
        raise ConfigError.invalid(_URL, url, "it is an https:, http: or file: URL")
    validator = of(_VALIDATOR)
    if validator not in _VALIDATORS:
        raise _java_class(_VALIDATOR, validator)
    for claim, (expected, unverified) in _CLAIMS.items():
        if not of(expected) and not of(unverified):
            raise ConfigError(
                f"Listener {keys.listener} would accept tokens whatever their claim {claim} is: set"
                f" {expected} to what it must be, or {unverified}=true"
            )
    return SecuredTokens(
        jwks_url=url,
        audiences=of("sasl.oauthbearer.expected.audience"),
        issuer=of("sasl.oauthbearer.expected.issuer") or None,
        clock_skew_s=of("sasl.oauthbearer.clock.skew.seconds"),
        scope_claim=of("sasl.oauthbearer.scope.claim.name"),
        user_claim=of("sasl.oauthbearer.sub.claim.name"),
        refresh_ms=of("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        backoff_ms=of("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        most_backoff_ms=of("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
    )


def _unsecured(options: Mapping[str, str], keys: _Keys) -> UnsecuredTokens:
    prefix = "unsecuredValidator"
    skew = options.get(prefix + "AllowableClockSkewMs", "").strip() or "0"
    if not skew.isdecimal():
        raise ConfigError(
            f"Invalid value {skew} for {prefix}AllowableClockSkewMs in"
            f" {keys.name(OAUTHBEARER, _JAAS)}: Allowable clock skew millis must not be negative"
        )
    return UnsecuredTokens(
        user_claim=options.get(prefix + "PrincipalClaimName", "").strip() or "sub",
        scope_claim=options.get(prefix + "ScopeClaimName", "").strip() or "scope",
        required_scope=tuple(options.get(prefix + "RequiredScope", "").split()),
        clock_skew_ms=int(skew),
    )
