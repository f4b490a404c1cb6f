"""Step 3: a Plan becomes batches."""
