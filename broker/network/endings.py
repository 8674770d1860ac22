"""What is thrown into the work of a connection that ends."""


class ConnectionEnded(BaseException):
    """The connection is ended from outside. No Exception: nobody answers it."""


class ClientGone(ConnectionResetError):
    """Its client has reset the connection while a request was parked."""
