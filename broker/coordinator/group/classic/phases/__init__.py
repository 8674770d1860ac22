"""What goes on in a classic group between requests: its rebalance, sessions, requests that wait."""
