"""Coordinators: state kept in internal topics, decided purely, run by a runtime."""
