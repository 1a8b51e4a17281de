"""A critic of your own: it learns, is logged, saved, loaded elsewhere, and assigns credit."""

import subprocess
import sys
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import equinox as eqx
import gymnasium as gym
import jax.numpy as jnp
import numpy as np

import belated
from belated.critics import Critic
from belated.critics.windows import history, next_history
from belated.methods import SAC
from belated.networks import MLP


class AdditiveCritic(Critic):
    """Q = Σ_j w(x_j) over the history + C(s, a): what each step has earned, and what is to come."""

    earned: MLP
    current: MLP
    weight: float = eqx.field(static=True)
    shape: Any = eqx.field(static=True)

    def _sum(self, steps: Any, mask: Any) -> Any:  # (W, B, D + A) and (W, B) to (B,)
        return jnp.sum(self.earned(steps)[..., 0] * mask, axis=0)

    def encode(self, batch: Any) -> Any:
        return self._sum(*history(batch, self.shape)), self._sum(batch.window, batch.window_mask)

    def value(self, encoding: Any, observation: Any, action: Any) -> Any:
        return encoding[0] + self.current(jnp.concatenate([observation, action], axis=-1))[:, 0]

    def next_value(self, batch: Any, action: Any) -> Any:
        earned = self._sum(*next_history(batch, self.shape))
        return self.value((earned, None), batch.next_observation, action)

    def auxiliary_loss(self, encoding: Any, batch: Any) -> Any:
        error = jnp.mean(batch.revealed * (encoding[1] - batch.interval_reward) ** 2)
        return self.weight * error, {"interval_error": jnp.sqrt(error)}  # a metric of its own

    def credit(self, batch: Any) -> Any:
        return self.earned(jnp.concatenate([batch.observation, batch.action], axis=-1))[:, 0]


@belated.register
@dataclass(frozen=True)
class Additive:
    """What stands in files and in a method."""

    needs: ClassVar[frozenset[str]] = frozenset({"window"})
    tells_credit: ClassVar[bool] = True
    units: tuple[int, ...] = (32,)
    weight: float = 0.1

    def build(self, rng: np.random.Generator, shape: Any, hidden: Any) -> AdditiveCritic:
        earned, current = (MLP(rng, shape.step_size, units, 1) for units in (self.units, hidden))
        return AdditiveCritic(earned, current, self.weight, shape)


if __name__ == "__main__":
    env = belated.delay(gym.make("Pendulum-v1"), interval=10)
    if sys.argv[1:]:  # another process: this module has registered the critic
        print("loaded:", belated.Agent.load(sys.argv[1], env).evaluate(2).returns)
    else:
        agent = belated.Agent(SAC(Additive(), hidden=(64, 64)), env, learning_starts=400)
        agent.learn(1_000, callback=belated.Evaluate(every=500, episodes=2))
        print("interval error:", [row["interval_error"] for row in agent.history])
        print("credit:", agent.credit(agent.play())[:5])
        with TemporaryDirectory() as folder:
            agent.save(folder)
            subprocess.run([sys.executable, __file__, folder], check=True)
