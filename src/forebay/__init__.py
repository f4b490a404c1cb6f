"""forebay keeps a training loop fed: DALI's programming model and PyTorch proxy, in open Python.

A layer imports only from layers to its left (tests/test_layers.py):

    errors, types, batch ← operators ← define ← compile ← execute ← deliver ← torch, compat, cli
"""
