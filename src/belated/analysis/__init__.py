"""Figures of runs, and how far a reward is from past-invariant."""
