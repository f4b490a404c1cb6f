"""Readers: where a pipeline's data comes from."""
