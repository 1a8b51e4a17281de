"""The same mathematics as in `belated.networks` and `belated.critics`, faster on a CPU.

Each has a plain version in the tests that it must equal.
"""
