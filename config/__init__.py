"""The configuration: tables of keys, the parser of `server.properties`, typed frozen views."""
