"""What can be built on the broker, whole: run from a checkout, not installed."""
