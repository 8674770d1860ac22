"""The exceptions that are thrown into the work of a connection that ends."""


class ConnectionEnded(BaseException):
    """The connection is ended from outside. It is no Exception, because nobody may answer it."""


class ClientGone(ConnectionEnded):
    """Its client has reset the connection, and the request in work was for that client alone."""
