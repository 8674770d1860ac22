"""One file for each request of a classic group's member: what it changes, upon the phases."""
