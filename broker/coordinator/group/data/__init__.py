"""Plain values: requests, replies, records, and the bytes of records."""
