"""Who may do what: the access that each API needs, the authorizer, the gate before the handlers."""
