"""What is thrown into the work of a connection that ends."""


class ConnectionEnded(BaseException):
    """The connection is ended from outside. No Exception: nobody answers it."""


class ClientGone(ConnectionEnded):
    """Its client has reset the connection, and the request in work was for that client alone."""
