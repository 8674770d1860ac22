"""Plain values: what requests ask and are told, what records say, and those records as bytes."""
