"""How noisy is the policy gradient with the HC-decomposition, and how noisy without (Fig. 1c)?

The paper's experiment ("Details for Variance Estimation") as a backbone: a policy is trained as
ever, while two critics that nothing else listens to learn from the same batches. Their policy
gradients are compared for the same policy on the same steps.

    >>> env = belated.make("HalfCheetah-v5", interval="15:20")  # doctest: +SKIP
    >>> agent = belated.Agent(PROBE, env)  # doctest: +SKIP
    >>> agent.learn(100_000, out="runs/variance")  # doctest: +SKIP
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from belated.backbones.base import require_part
from belated.backbones.sac import SAC, SACState
from belated.backbones.temporal_difference import (
    Critics,
    bootstrapped,
    critic_loss,
    move_towards,
)
from belated.critics import HC, Critic, CriticConfig, Segment
from belated.experience.base import Metrics
from belated.experience.batch import IntervalBatch, Needs
from belated.experience.step import ProblemShape
from belated.methods import Method, find_method
from belated.networks import StochasticPolicy
from belated.networks.descent import descend
from belated.parts import register

_STREAM = 0x9AD5
"""Keeps the extra critics' first parameters apart from SAC's, drawn from the same seed."""


def _critic_of(name: str) -> Any:
    """The recipe in the table of methods."""
    backbone: Any = find_method(name).backbone
    return backbone.critic


_HC: HC = _critic_of("hc-singleton")
_RNN: Segment = _critic_of("q-rnn")


class Listener(NamedTuple):
    """A critic that learns and is never asked what to do."""

    critic: Critic
    target: Critic
    optimizer: Any


class ProbeState(NamedTuple):
    """Everything that an update changes: what SAC has, in its order, and two critics more."""

    actor: StochasticPolicy
    critics: Critics
    targets: Critics
    log_alpha: jax.Array
    actor_optimizer: Any
    critic_optimizer: Any
    alpha_optimizer: Any
    credit: Any
    key: jax.Array
    hc: Listener
    rnn: Listener

    @property
    def sac(self) -> SACState:
        """What SAC has."""
        return SACState._make(self[: len(SACState._fields)])


@register
@dataclass(frozen=True)
class VarianceProbe(SAC):
    """SAC beside which two more critics learn, to compare the noise of their policy gradients.

    What SAC learns is, to the last bit, what it learns alone: nothing of the extra critics reaches
    it, their first parameters and its own are drawn apart, and they draw no other random numbers.
    (On CPUs the tests say so; a compiler is free to round otherwise.) They are trained as in
    DDPG, for nobody climbs them and so nobody overestimates: one of each kind and its slow target,
    y = R_t + γ(1 − terminated)·Q̂(the next history, π(s_{t+1})), where R_t is what was experienced
    and π the deterministic action. Rates, γ, τ and the loss are SAC's.

    Each update reports, for X in hc and rnn:

    - ``gradient_variance_X``: the sample variance over the batch of
      ∇_a Q(τ_{t_i−c:t} ∘ (s_t, a))|_{a=π(s_t)} ∇_θ π(s_t), summed over the θ of the policy's final
      layer that make the mean action (Eqs. 5 and 7). The paper draws its mean over the training.
    - ``gradient_norm_X``: the squared norm of the gradients' mean over the batch. Its expectation
      is that of the true mean, plus the variance over the number of steps.
    - ``td_loss_X``: the critic's TD loss.

    The variance alone is in the units of (value)²: a critic that doubles all its differences
    between actions quadruples it, though the direction of the gradient is as certain as before.
    Divided by ``gradient_norm_X`` it is free of the scale: noise to signal. That has a catch too:
    where a policy is at its best by a critic there is no signal, and this one climbs an HC critic.

    Attributes:
        critic: what trains the policy; hc-singleton's, as in the paper.
        hc: the extra critic with the HC-decomposition; ``hidden`` are the layers of its C.
        rnn: the extra critic without.
    """

    critic: CriticConfig = _HC
    hc: HC = _HC
    rnn: Segment = _RNN

    def __post_init__(self) -> None:
        super().__post_init__()
        require_part(self, self.hc, HC, "needs an HC recipe as its hc")
        require_part(self, self.rnn, Segment, "needs a Segment recipe as its rnn")

    @property
    def needs(self) -> Needs:
        """What the critics, the extra ones too, and the credit rule look at."""
        return super().needs | self.hc.needs | self.rnn.needs

    def init(self, seed: int, shape: ProblemShape) -> Any:
        """Make a fresh `ProbeState`."""
        rng = np.random.default_rng([seed, _STREAM])
        hc, rnn = (
            self._listener(recipe.build(rng, shape, self.hidden)) for recipe in (self.hc, self.rnn)
        )
        return ProbeState(*super().init(seed, shape), hc=hc, rnn=rnn)

    def _listener(self, critic: Critic) -> Listener:
        # The target is a copy: buffers that are given away to an update must not be shared.
        return Listener(critic, jax.tree.map(jnp.copy, critic), self._optimizer.init(critic))

    def update(self, state: Any, data: IntervalBatch) -> tuple[Any, Metrics]:
        """One update of SAC's, and one step of each extra critic.

        All is measured on the state that the batch finds. So the policy is the one whose gradient
        SAC takes; and what the critics' losses encode of the histories is of the very parameters
        that are asked for values, which it would no more be after their step.
        """
        if len(data.reward) < 2:
            raise ValueError("One step has no sample variance: set batch_size to 2 or more.")
        sac, metrics = super().update(state.sac, data)
        hc, of_hc = self._listen(state.hc, state.actor, data)
        rnn, of_rnn = self._listen(state.rnn, state.actor, data)
        metrics |= {f"{name}_hc": value for name, value in of_hc.items()}
        metrics |= {f"{name}_rnn": value for name, value in of_rnn.items()}
        return ProbeState(*sac, hc=hc, rnn=rnn), metrics

    def _listen(
        self, listener: Listener, policy: StochasticPolicy, batch: IntervalBatch
    ) -> tuple[Listener, Metrics]:
        """Measure a critic's policy gradients, and let it take one step."""
        critic, target, optimizer = listener
        next_value = target.next_value(batch, policy.mode(batch.next_observation))
        wanted = bootstrapped(batch.reward, batch, self.gamma, next_value)
        (gradient,), ((encoding,), metrics) = jax.grad(critic_loss, has_aux=True)(
            (critic,), batch, wanted, self.smooth_l1
        )
        policy_gradients = final_layer_gradients(policy, critic, encoding, batch.observation)
        critic, optimizer = descend(self._optimizer, gradient, optimizer, critic)
        target = move_towards(target, critic, self.tau)
        spread = noise_and_signal(policy_gradients)
        return Listener(critic, target, optimizer), spread | {"td_loss": metrics["td_loss"]}


def final_layer_gradients(
    policy: StochasticPolicy, critic: Critic, encoding: Any, observation: jax.Array
) -> Any:
    """∇_a Q(τ ∘ (s, a))|_{a=π(s)} ∇_θ π(s) of every single step (Eqs. 5 and 7).

    Args:
        policy: π, of which the deterministic action counts.
        critic: Q.
        encoding: what it knows of the histories τ.
        observation: s, shape (B, D).

    Returns:
        The final layer with an axis of length B in front of every parameter. Outputs that do not
        make the deterministic action, such as standard deviations, have gradients of 0.
    """

    def total(action: jax.Array) -> jax.Array:  # so that each action gets its own slope
        return jnp.sum(critic.value(encoding, observation, action))

    def of_one_step(observation: jax.Array, slope: jax.Array) -> Any:
        _, pull = jax.vjp(
            lambda layer: _with_final(policy, layer).mode(observation), _final(policy)
        )
        return pull(slope)[0]

    slopes = jax.grad(total)(policy.mode(observation))  # (B, A)
    return jax.vmap(of_one_step)(observation, slopes)


def _final(policy: StochasticPolicy) -> Any:
    return policy.trunk.layers[-1]


def _with_final(policy: StochasticPolicy, layer: Any) -> StochasticPolicy:
    changed: StochasticPolicy = eqx.tree_at(_final, policy, layer)
    return changed


def noise_and_signal(gradients: Any) -> Metrics:
    """The sums over parameters of the gradients' sample variances, and of their squared means.

    Args:
        gradients: a pytree of arrays with the batch's axis first.
    """
    leaves = jax.tree.leaves(gradients)
    return {
        "gradient_variance": sum(jnp.sum(jnp.var(g, axis=0, ddof=1)) for g in leaves),
        "gradient_norm": sum(jnp.sum(jnp.mean(g, axis=0) ** 2) for g in leaves),
    }


PROBE = Method(VarianceProbe())
"""The paper's experiment with its settings, to be given to `belated.Agent`."""
