"""The agent: learn, predict, evaluate, save and load."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

import belated
from belated.credit import Credit, Rudder
from belated.critics import HC, ProblemShape
from belated.envs.intervals import AnyEnv
from belated.envs.lengths import non_negative_int, positive_int
from belated.methods import Method, find_method, from_json, override, to_json
from belated.rollout import rollout_of
from belated.training import checkpoint
from belated.training.callbacks import (
    Callback,
    CallbackLike,
    Checkpoint,
    Evaluate,
    ProgressBar,
    as_callbacks,
)
from belated.training.evaluation import Episode, Evaluation, evaluate, play_episode
from belated.training.interrupt import deferred_interrupt
from belated.training.lanes import ActionScale, EnvLanes, Lanes, VectorLanes, copies_of
from belated.training.learner import Learner
from belated.training.logging import CSVWriter, TensorBoardWriter, Writer
from belated.training.off_policy import OffPolicy, replay_for
from belated.training.on_policy import OnPolicy
from belated.training.problem import problem_of


class Agent:
    """Learns from rewards that arrive late.

    Args:
        method: a name from `belated.METHODS`, or a `belated.Method` of your own.
        env: a delayed environment (see `belated.delay` and `belated.mark`), or a Gymnasium vector
            environment of such.
        seed: fixes everything: networks, exploration, sampling, and the environment's episodes.
        num_envs: how many copies of ``env`` to run side by side.
        **overrides: hyperparameters that differ from the method's, such as ``batch_size=256``.

    Example:
        >>> import belated, gymnasium as gym
        >>> env = belated.delay(gym.make("Pendulum-v1"), interval=20)
        >>> agent = belated.Agent("hc-singleton", env, learning_starts=100, hidden=(16, 16))
        >>> agent = agent.learn(120)
        >>> observation, _ = env.reset(seed=0)
        >>> action, _ = agent.predict(observation)
        >>> action.shape
        (1,)
    """

    def __init__(
        self,
        method: str | Method,
        env: AnyEnv | VectorEnv[Any, Any, Any],
        *,
        seed: int = 0,
        num_envs: int = 1,
        **overrides: Any,
    ) -> None:
        method = find_method(method) if isinstance(method, str) else method
        seed = non_negative_int(seed, "The seed")
        shape, scale = problem_of(env)
        self._set_up(override(method, overrides), shape, scale, seed)
        self._attach(env, positive_int(num_envs, "num_envs"))

    def _set_up(self, method: Method, shape: ProblemShape, scale: ActionScale, seed: int) -> None:
        self.method = method
        self.shape = shape
        self.seed = seed
        self.steps = 0
        """How many environment steps the agent has learned from."""
        self.history: list[dict[str, float]] = []
        """The rows logged so far."""
        self.learner = Learner(method, shape, seed)
        self.scale = scale
        self.env: AnyEnv | None = None
        self._lanes: Lanes | None = None
        self._experience: OffPolicy | OnPolicy | None = None
        streams = np.random.SeedSequence([seed, 0xB1A7ED]).spawn(3)
        self._exploration, self._sampling, self._prediction = map(np.random.default_rng, streams)
        self._metrics: dict[str, jax.Array] = {}
        self._writers: list[Writer] = []
        self._seconds = 0.0  # spent learning before the clock was started
        self._clock: float | None = None  # when it was, later by the time of evaluations
        self.in_step = False
        """Whether a step is under way, or was when an error came."""

    def _attach(self, env: AnyEnv | VectorEnv[Any, Any, Any], num_envs: int) -> None:
        if isinstance(env, VectorEnv):
            if num_envs != 1:
                raise ValueError("num_envs is for single environments; a vector has its own.")
            self._lanes, num_envs = VectorLanes(env, self.scale, self.seed), env.num_envs
        else:
            self.env = env
            envs = [env, *copies_of(env, num_envs - 1)]
            self._lanes = EnvLanes(envs, self.scale, self.seed)
        if self.method.backbone.on_policy:
            self._experience = OnPolicy(self.method, self.shape, num_envs)
        else:
            self._experience = OffPolicy(self.method, self.shape, num_envs, self._sampling)
        self._started = False

    # ------------------------------------------------------------------ learning

    def learn(
        self,
        total_timesteps: int,
        *,
        callback: CallbackLike | Sequence[CallbackLike] | None = None,
        progress_bar: bool = False,
        out: str | Path | None = None,
        eval_every: int = 5_000,
        eval_episodes: int = 10,
        eval_env: AnyEnv | None = None,
        checkpoint_every: int = 50_000,
        tensorboard: bool = False,
    ) -> Agent:
        """Learn for some more environment steps. Calling it again goes on where it stopped.

        Ctrl-C stops between two steps; what ``out`` asked for is saved first.

        Args:
            total_timesteps: how many steps to take.
            callback: a `Callback`, a function of the agent that may return False to stop, or a
                list of such.
            progress_bar: show steps per second, the last return and the time left.
            out: a run folder: ``progress.csv`` gets a row for each evaluation, ``checkpoint/``
                what it takes to go on.
            eval_every: with ``out``, how many steps lie between two evaluations; there is always
                one at the end.
            eval_episodes: with ``out``, how many episodes an evaluation has.
            eval_env: with ``out``, where to evaluate; by default another environment like the
                agent's, which can be made if that has a registered id.
            checkpoint_every: with ``out``, how many steps lie between two checkpoints; there is
                always one at the end.
            tensorboard: with ``out``, also write event files to ``out/tensorboard``.
        """
        goal = self.steps + positive_int(total_timesteps, "total_timesteps")
        lanes, _ = self._require_env()
        callbacks = as_callbacks(callback)
        evaluation = None
        if out is not None:
            eval_env = eval_env if eval_env is not None else self._evaluation_env()
            evaluation = Evaluate(eval_every, eval_episodes, eval_env)
            folder = Path(out)
            self._open_writers(folder, tensorboard)
            saving = Checkpoint(folder / "checkpoint", checkpoint_every)
            callbacks = [evaluation, *callbacks, saving]
        if progress_bar:
            callbacks.append(ProgressBar(goal))
        if not self._started:
            lanes.start()
            self._started = True
        if self._run(goal, callbacks, evaluation):
            raise KeyboardInterrupt
        return self

    def _run(self, goal: int, callbacks: list[Callback], at_end: Evaluate | None) -> bool:
        """Take steps until the goal or a callback stops it; return whether the user did."""
        for each in callbacks:
            each.on_start(self)
        self._clock = time.monotonic() - self._seconds
        try:
            with deferred_interrupt() as interrupt:
                stopped = False
                while self.steps < goal and not stopped and not interrupt.requested:
                    self._step()
                    answers = [each.on_step(self) for each in callbacks]
                    stopped = False in answers
            logged = self.history[-1]["step"] if self.history else 0
            if at_end is not None and logged < self.steps and not interrupt.requested:
                at_end.act(self)
        finally:
            self._seconds, self._clock = self.seconds, None
            for each in reversed(callbacks):
                each.on_end(self)
            for writer in self._writers:
                writer.close()
            self._writers = []
        return interrupt.requested

    def _open_writers(self, folder: Path, tensorboard: bool) -> None:
        if not self.history and (folder / "progress.csv").exists():
            raise ValueError(f"{folder} holds another run already; choose another folder.")
        folder.mkdir(parents=True, exist_ok=True)
        self._writers = [CSVWriter(folder / "progress.csv", self.history)]
        if tensorboard:
            self._writers.append(TensorBoardWriter(folder / "tensorboard"))

    @property
    def seconds(self) -> float:
        """The time spent learning so far, evaluations not included."""
        return self._seconds if self._clock is None else time.monotonic() - self._clock

    def _step(self) -> None:
        """Take one step in each environment, then the updates that are due."""
        self.in_step = True
        lanes, experience = self._require_env()
        shape = (len(lanes.observation), self.shape.action_size)
        if self.steps < self.method.learning_starts:
            actions = self._exploration.uniform(-1, 1, shape).astype(np.float32)
        else:
            noise = self._exploration.standard_normal(shape, np.float32)
            actions = self.learner.act(lanes.observation, noise)
        count = 0
        for lane, step in lanes.step(actions):
            if self.method.credit.needs_dense and np.isnan(step.dense_reward):
                raise ValueError(
                    'This method learns from info["dense_reward"], which the environment does not '
                    "give. Choose a method that learns from the revealed reward."
                )
            experience.add(step, lane)
            self.steps += 1
            count += self.steps > self.method.learning_starts
        self._metrics = experience.learn(self.learner, count) or self._metrics
        self.in_step = False

    def log(self, row: dict[str, float], not_learning: float = 0.0) -> None:
        """Log a row of numbers at the current step, with the time and the last update's metrics.

        Args:
            row: the numbers.
            not_learning: seconds just spent on something else than learning.
        """
        if self._clock is not None:
            self._clock += not_learning
        seconds = self.seconds
        last = self.history[-1] if self.history else {"step": 0, "wall_time": 0}
        taken, since = self.steps - last["step"], seconds - last["wall_time"]
        row = {name: float(value) for name, value in (row | self._metrics).items()} | {
            "step": self.steps,
            "wall_time": seconds,
            "steps_per_second": taken / since if since > 0 else 0.0,
        }
        self.history.append(row)
        for writer in self._writers:
            writer.write(row)

    # ------------------------------------------------------------------ using the policy

    def predict(
        self,
        observation: npt.ArrayLike,
        state: None = None,
        episode_start: None = None,
        deterministic: bool = True,
    ) -> tuple[npt.NDArray[np.float32], None]:
        """Return the action for an observation, or the actions for a batch of them.

        The signature is Stable-Baselines3's; there is no recurrent state, so it is always None.
        """
        array = np.asarray(observation, np.float32)
        if array.shape[-1:] != (self.shape.observation_size,) or array.ndim > 2:
            raise ValueError(
                f"Expected an observation of {self.shape.observation_size} numbers (the last one "
                f"is the phase), or a batch of them, got the shape {array.shape}."
            )
        batch = np.atleast_2d(array)
        if deterministic:
            actions = self.learner.mode(batch)
        else:
            noise = self._prediction.standard_normal(
                (len(batch), self.shape.action_size), np.float32
            )
            actions = self.learner.act(batch, noise)
        actions = self.scale.to_env(actions)
        return (actions if array.ndim == 2 else actions[0]), None

    def evaluate(self, episodes: int = 10, *, env: AnyEnv | None = None) -> Evaluation:
        """Play episodes with the deterministic policy, on an environment apart from training's.

        Args:
            episodes: how many.
            env: where to play; by default another environment like the agent's.
        """
        env = env if env is not None else self._evaluation_env()
        return evaluate(env, self.learner.mode, self.scale, episodes=episodes, seed=self.seed)

    def play(self, *, seed: int = 0, env: AnyEnv | None = None) -> Episode:
        """Play one episode with the deterministic policy and return all that happened."""
        env = env if env is not None else self._evaluation_env()
        return play_episode(env, self.learner.mode, self.scale, seed)

    def credit(self, episode: Episode) -> npt.NDArray[np.float64]:
        """Say which steps earned the reward.

        For methods with a credit rule it is what the rule gives each step; for the others, if they
        have a history function, H(τ_{t_i−c:j+1}) − H(τ_{t_i−c:j}) for each step j. Steps whose
        interval's reward was never revealed have no credit: NaN.

        Args:
            episode: what `play` returned.
        """
        state, rule = self.learner.state, self.method.credit
        if isinstance(rule, Rudder):
            return rule.credit(state.credit, rollout_of(episode.steps))[:, 0]
        by_rule = isinstance(rule, Credit) and rule.tells_steps_apart
        if not by_rule and not isinstance(self.method.critic, HC):
            raise ValueError(
                "This method does not assign credit to steps. Methods with a history function do "
                "(hc-singleton, hc-pairwise-K, hc-rnn), and those with a credit rule (ircr, rrd, "
                "rudder)."
            )
        spare = self.shape.max_length + self.shape.overlap + 2
        replay = replay_for(len(episode.steps) + spare, self.shape)
        for step in episode.steps:
            replay.add(step)
        parts = []
        for batch in replay.in_order(batch_size=256):
            if isinstance(rule, Credit) and by_rule:
                credit = np.asarray(rule.reward(state.credit, batch))
            else:
                credit = np.mean([critic.credit(batch) for critic in state.critics], axis=0)
            parts.append(np.where(batch.revealed > 0, credit, np.nan))
        return np.concatenate(parts).astype(np.float64)

    def _evaluation_env(self) -> AnyEnv:
        if not hasattr(self, "_second_env"):
            if self.env is None:
                raise ValueError("Pass an environment: evaluate(..., env=...).")
            (self._second_env,) = copies_of(self.env, 1)
        return self._second_env

    # ------------------------------------------------------------------ saving

    def save(self, folder: str | Path, *, replay: bool = False) -> None:
        """Save the agent to a folder.

        Args:
            folder: where to; an agent that is there already is replaced.
            replay: also save the replay and the open episodes, so that learning can go on exactly
                where it stopped.
        """
        manifest: dict[str, Any] = {
            "belated": belated.__version__,
            "method": to_json(self.method),
            "shape": self.shape._asdict(),
            "action_low": self.scale.low.tolist(),
            "action_high": self.scale.high.tolist(),
            "seed": self.seed,
            "steps": self.steps,
            "seconds": self.seconds,
            "history": self.history,
            "generators": {
                name: getattr(self, f"_{name}").bit_generator.state
                for name in ("exploration", "sampling", "prediction")
            },
        }
        arrays = None
        if self._lanes is not None and self._experience is not None:
            manifest["num_envs"] = len(self._lanes.observation)
            manifest["experience"] = self._experience.counters()
            if replay:
                manifest["episodes"] = self._lanes.episodes
                arrays = self._experience.arrays()
                if isinstance(self._lanes, EnvLanes) and self._started:
                    arrays["observation"] = self._lanes.observation
                    for lane, taken in enumerate(self._lanes.taken):
                        empty = np.zeros((0, self.shape.action_size), np.float32)
                        arrays[f"taken.{lane}"] = np.stack(taken) if taken else empty
        checkpoint.write(Path(folder), manifest, self.learner.state, arrays)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        env: AnyEnv | VectorEnv[Any, Any, Any] | None = None,
    ) -> Agent:
        """Load a saved agent, or the checkpoint of a run folder.

        Loading runs no code from the folder, so it makes no environment: without ``env`` the agent
        can predict; with it, it can be evaluated and go on learning. If the replay was saved, it
        goes on exactly where it stopped; only a vector environment of Gymnasium's, which cannot be
        brought back to where it was, starts new episodes.

        Args:
            folder: a run folder or a saved agent.
            env: an environment of the same kind as before; as many copies of it are made as there
                were.
        """
        path = checkpoint.find(Path(folder))
        manifest = checkpoint.read_manifest(path)
        agent = cls.__new__(cls)
        low, high = (np.array(manifest[f"action_{end}"], np.float32) for end in ("low", "high"))
        shape = ProblemShape(**manifest["shape"])
        agent._set_up(
            from_json(manifest["method"]), shape, ActionScale(low, high), manifest["seed"]
        )
        agent.learner.leaves = checkpoint.read_state(path, agent.learner.state)
        agent.steps = manifest["steps"]
        agent.history = manifest["history"]
        agent._seconds = manifest["seconds"]
        for name, state in manifest["generators"].items():
            getattr(agent, f"_{name}").bit_generator.state = state
        if env is not None:
            found, bounds = problem_of(env)
            if found != shape or not np.array_equal(bounds, agent.scale):
                raise ValueError(
                    f"The agent was trained on another kind of environment: {shape} with actions "
                    f"in {agent.scale}, but this one has {found} with actions in {bounds}."
                )
            lanes = 1 if isinstance(env, VectorEnv) else manifest.get("num_envs", 1)
            agent._attach(env, lanes)
            agent._resume(path, manifest)
        return agent

    def _resume(self, path: Path, manifest: dict[str, Any]) -> None:
        """Take over the replay and the open episodes, if they were saved."""
        lanes, experience = self._require_env()
        arrays = checkpoint.read_replay(path)
        if arrays is not None and len(lanes.observation) != manifest["num_envs"]:
            raise ValueError(
                f"The agent learned in {manifest['num_envs']} environments at once, not in "
                f"{len(lanes.observation)}; its replay fits those only."
            )
        experience.restore(manifest.get("experience", {}), arrays)
        if arrays is None:
            return
        if isinstance(lanes, EnvLanes) and "observation" in arrays:
            taken = [arrays[f"taken.{lane}"] for lane in range(len(lanes.envs))]
            lanes.resume(manifest["episodes"], taken, arrays["observation"])
            self._started = True
        else:
            lanes.episodes = [count + 1 for count in manifest["episodes"]]
            for lane in range(len(lanes.observation)):
                experience.start_episode(lane)

    def _require_env(self) -> tuple[Lanes, OffPolicy | OnPolicy]:
        if self._lanes is None or self._experience is None:
            raise ValueError("This agent has no environment: load it with Agent.load(folder, env).")
        return self._lanes, self._experience
