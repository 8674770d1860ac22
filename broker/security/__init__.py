"""Access control: the access that each API needs, the authorizer, the gate before the handlers."""
