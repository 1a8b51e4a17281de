"""What happened: steps, the environments they come from, and the stores that are learned from."""
