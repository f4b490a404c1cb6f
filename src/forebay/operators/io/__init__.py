"""Operators that read."""
