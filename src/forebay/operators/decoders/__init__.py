"""Operators that decode files in memory."""
