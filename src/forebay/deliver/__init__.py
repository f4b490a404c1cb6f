"""Step 4: batches reach the training loop."""
