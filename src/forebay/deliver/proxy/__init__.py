"""The proxy: PyTorch DataLoader workers hand samples to a pipeline in the training process.

    protocol ← transport ← reference ← client ← server ← loader

A worker calls the proxy (`client`), which keeps the inputs and gives references (`reference`).
Collating references sends the inputs through a local socket (`transport`) as messages (`protocol`)
to the server, which runs them and keeps the results until `produce_data` puts them in the
references' place (`server`).
"""
