"""A backbone of your own: REINFORCE, with any credit rule for rollouts."""

import subprocess
import sys
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import belated
from belated.backbones import Backbone
from belated.backbones.policy_gradient import generalized_advantages, standardize, weighted_mean
from belated.credit import RolloutCredit
from belated.methods import RolloutTraining, Rudder
from belated.networks import UnsquashedPolicy
from belated.networks.descent import adam, descend


class ReinforceState(NamedTuple):
    """What an update changes; the actor comes first."""

    actor: UnsquashedPolicy
    optimizer: Any
    credit: Any
    key: jax.Array


@belated.register
@dataclass(frozen=True)
class Reinforce(Backbone):
    """The policy gradient with discounted returns, one step a rollout."""

    learns_from: ClassVar[type[RolloutTraining]] = RolloutTraining
    tells_credit: ClassVar[bool] = True
    credit: RolloutCredit
    rollout_steps: int = 400
    learning_rate: float = 3e-3

    def init(self, seed: int, shape: Any) -> ReinforceState:
        rng = np.random.default_rng(seed)
        actor = UnsquashedPolicy(rng, shape.observation_size, (64,), shape.action_size)
        parts = adam(self.learning_rate).init(actor), self.credit.init(rng, shape)
        return ReinforceState(actor, *parts, jax.random.key(seed))

    def act(self, actor: UnsquashedPolicy, observation: Any, noise: Any) -> Any:
        return actor.mean(observation) + jnp.exp(actor.log_std) * noise

    def update(self, state: ReinforceState, data: Any) -> Any:
        key, credit_key = jax.random.split(state.key)
        learned, reward, metrics = self.credit.redistribute(state.credit, data, credit_key)
        returns = generalized_advantages(reward, 0 * reward, 0 * reward, data, (0.9, 1.0))

        def loss(policy: UnsquashedPolicy) -> Any:
            log_prob = policy.log_prob(data.observation, data.action)
            return -weighted_mean(log_prob * standardize(returns, data.mask), data.mask)

        gradients, optimizer = jax.grad(loss)(state.actor), adam(self.learning_rate)
        actor, moments = descend(optimizer, gradients, state.optimizer, state.actor)
        metrics |= {"return_to_go": weighted_mean(returns, data.mask)}  # a metric of its own
        return ReinforceState(actor, moments, learned, key), metrics

    def credit_of(self, state: ReinforceState, data: Any) -> Any:
        return self.credit.credit(state.credit, data)


if __name__ == "__main__":
    env = belated.make("Pendulum-v1", interval=10)
    if sys.argv[1:]:  # another process: this module has registered the backbone
        print("loaded:", belated.Agent.load(sys.argv[1], env).evaluate(2).returns)
    else:
        agent = belated.Agent(Reinforce(Rudder(lstm_units=16)), env)
        agent.learn(2_000, callback=belated.Evaluate(every=1_000, episodes=2))
        print([row["return_to_go"] for row in agent.history], agent.credit(agent.play())[:5])
        with TemporaryDirectory() as folder:
            agent.save(folder)
            subprocess.run([sys.executable, __file__, folder], check=True)
