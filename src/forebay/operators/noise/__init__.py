"""Noise that is added to images: `fn.noise`."""
