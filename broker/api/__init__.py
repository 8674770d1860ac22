"""One thin file per API key: check, delegate, answer."""
