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
        if f["squash"] == "choose":
            return self.choose(x, np.asarray(observation))
        x = np.tanh(x) if f["squash"] == "tanh" else np.clip(x, -1, 1)
        x = np.clip(f["low"] + (x + 1) / 2 * (f["high"] - f["low"]), f["low"], f["high"])
        return x.astype(np.float32)

    def choose(self, scores: Any, observation: Any) -> Any:
        """Discrete actions: the best option that is allowed, a number for each component."""
        f, codes = self.file, self.file.get("codes")  # which options joint actions consist of
        if "mask" in f:
            allowed = observation[..., int(f["mask"]) :][..., : f["choices"].sum()]
            if codes is not None:
                allowed = allowed @ codes.T == len(f["choices"])
            scores = np.where(allowed, scores, -np.inf)
        if codes is not None:
            scores = codes[scores.argmax(axis=-1)]
        parts = np.split(scores, np.cumsum(f["choices"])[:-1], axis=-1)
        return f["low"] + np.stack([part.argmax(axis=-1) for part in parts], axis=-1)


if __name__ == "__main__":
    if sys.argv[1:]:
        policy = Policy(sys.argv[1])
        print(policy(np.zeros(len(policy.file["mean"]), np.float32)))
    else:
        print("python run_policy.py policy.npz")
