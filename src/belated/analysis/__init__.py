"""Runs -> statistics -> figures."""
