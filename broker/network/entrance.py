"""The entrance of a listener with SASL, where a new connection gets its authenticator."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from broker.network.authentication_frames import AuthenticationFrames
from broker.network.connection import Connection
from broker.network.routes import RouteTable
from broker.security.authentication.authenticator import Authenticator
from broker.security.authentication.outcomes import AuthenticatedUser
from broker.security.authentication.sasl_listener import SaslListener
from protocol.api_keys import ApiKey

BEFORE_AUTHENTICATION: Final = (
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
)
"""The APIs for a client that has not yet proved who it is."""


def entrance(
    listeners: Mapping[str, SaslListener], strangers: RouteTable
) -> Callable[[Connection], None]:
    """Return the function to call with every new connection; it leaves connections of listeners
    without SASL unchanged.

    `strangers` has the routes of a client that has not yet proved who it is.
    """
    raw = strangers.raw()

    def enter(connection: Connection) -> None:
        listener = listeners.get(connection.info.listener_name)
        if listener is None:
            return
        info = connection.info
        authenticator = Authenticator(listener, info.connection_id, info.peer_host)
        info = replace(info, authentication=authenticator, is_stranger=True)

        def entered(identity: AuthenticatedUser) -> None:
            connection.let_in(
                identity.principal,
                by_token=identity.by_token,
                guarded=authenticator.expires_at is not None,
            )

        authenticator.entered = entered
        connection.guard(
            partial(AuthenticationFrames, authenticator, info, raw),
            info,
            strangers,
            listener.max_receive_bytes,
        )

    return enter
