"""What may be configured: one table of keys, the parser of `server.properties`, typed views."""
