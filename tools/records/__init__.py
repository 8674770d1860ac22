"""Records as text, both ways: JSON lines and templates. Shared by `consume` and `produce`."""
