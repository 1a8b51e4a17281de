"""Run an exported policy with NumPy alone: neither belated nor JAX is imported."""

import sys
from typing import Any

import numpy as np


class Policy:
    """What ``agent.export("policy.npz")`` has written."""

    def __init__(self, path: str) -> None:
        self.file = dict(np.load(path))  # numbers and words: nothing is unpickled
        self.file |= {k: v.astype(float) for k, v in self.file.items() if v.dtype == np.float32}
        self.layers = sum(name.startswith("weight") for name in self.file)

    def __call__(self, observation: Any) -> Any:
        """The actions for observations (..., D); the phase is their last number."""
        f, x = self.file, np.asarray(observation, np.float32).astype(float)
        if np.isfinite(f["bound"]):
            x = np.clip((x - f["mean"]) / f["scale"], -f["bound"], f["bound"])
        for n in range(self.layers):
            if n > 0:
                x = np.maximum(x, 0) if f["activation"] == "relu" else np.tanh(x)
            x = x @ f[f"weight{n}"] + f[f"bias{n}"]
        x = np.tanh(x) if f["squash"] == "tanh" else np.clip(x, -1, 1)
        x = np.clip(f["low"] + (x + 1) / 2 * (f["high"] - f["low"]), f["low"], f["high"])
        return x.astype(np.float32)


if __name__ == "__main__":
    if sys.argv[1:]:
        policy = Policy(sys.argv[1])
        print(policy(np.zeros(len(policy.file["mean"]), np.float32)))
    else:
        print("python run_policy.py policy.npz")
