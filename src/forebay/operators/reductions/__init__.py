"""Sums, means, extremes and deviations along axes."""
