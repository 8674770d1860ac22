"""TLS without sockets: stores of keys and certificates, contexts of them, and who a certificate is.

A leaf, because broker and command line need the same: the broker for its listeners, the command
line to reach them and to make certificates (decision 91). Nothing here waits for a network or knows
an event loop; the caller hands in the function that reads files.

    settings.py     the settings: Kafka's `ssl.*` keys as frozen values
    stores.py       PEM, PKCS12 and JKS, in files or inline, to a private key and certificates
    contexts.py     these to `ssl.SSLContext`s, for servers and clients
    suites.py       Java's names of cipher suites
    names.py        a certificate's names as Java prints them
    principals.py   `ssl.principal.mapping.rules`
    authority.py    certificates for trying it

An error that an operator can correct is a `TlsProblem`; its text says what is wrong and what to do.
"""
