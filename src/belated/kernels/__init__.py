"""The same mathematics as in `belated.networks` and `belated.critics`, faster on a CPU.

The tests compare each with a plain version.
"""
