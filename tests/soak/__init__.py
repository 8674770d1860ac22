"""A soak: clients of every kind on one broker for an hour; each goes on, and all comes back."""
