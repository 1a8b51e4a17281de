"""Training: the agent and what surrounds it."""
