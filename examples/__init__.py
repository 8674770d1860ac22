"""Whole programs that are built on the broker: run from a checkout, not installed."""
