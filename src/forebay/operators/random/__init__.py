"""Random numbers and choices: `fn.random`."""
