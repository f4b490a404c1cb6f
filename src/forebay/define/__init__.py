"""Step 1: user code becomes nodes."""
