"""What PyTorch users import."""
