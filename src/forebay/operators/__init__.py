"""The library: what can be done to data, one file an operator. It knows nothing of graphs."""
