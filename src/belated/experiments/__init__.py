"""Many runs at once: grids of runs, where they run, and the paper's figures."""
