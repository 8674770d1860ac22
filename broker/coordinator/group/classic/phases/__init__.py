"""The life of a classic group between requests: its rebalance, sessions, requests that wait."""
