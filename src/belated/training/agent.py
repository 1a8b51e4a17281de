"""The agent: learn, predict, evaluate, save and load."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import VectorEnv

import belated
from belated.backbones import Backbone
from belated.envs.copies import copies_of
from belated.envs.intervals import AnyEnv
from belated.experience.base import Metrics
from belated.experience.lanes import RepeatError, lanes_of
from belated.experience.spaces import Spaces
from belated.experience.step import ProblemShape
from belated.methods import Method, as_method
from belated.networks.plain import PlainPolicy
from belated.parts import from_json, override, require_savable, to_json
from belated.ranges import non_negative_int, optional, positive, positive_int
from belated.training import checkpoint
from belated.training.callbacks import CallbackLike, as_callbacks
from belated.training.evaluation import Episode, Evaluation, credit_of, evaluate, play_episode
from belated.training.export import export
from belated.training.folder import Options
from belated.training.horizon import too_short_sighted
from belated.training.interrupt import Interrupt
from belated.training.learner import Learner, LearningError
from belated.training.logging import Journal, Row
from belated.training.loop import Loop
from belated.training.plausible import require_plausible
from belated.training.progress import ProgressBar
from belated.training.session import Session

_MOST_COPIES = 1_024
"""How many environments a file alone may ask for; with a replay it must be as many as that has."""
_PASS = (
    "Pass an environment: learn(..., eval_env=...), evaluate(env=...), play(env=...), "
    "Evaluate(env=...)."
)


class Agent:
    """Learns from rewards that arrive late.

    Args:
        method: a name from `belated.METHODS`, a `belated.Method` of your own, or a backbone.
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
        method: str | Method | Backbone,
        env: AnyEnv | VectorEnv[Any, Any, Any],
        *,
        seed: int = 0,
        num_envs: int = 1,
        **overrides: Any,
    ) -> None:
        method = override(as_method(method), overrides)
        require_savable(method)
        seed = non_negative_int(seed, "The seed")
        self._set_up(method, Spaces.of(env), seed)
        self._attach(env, positive_int(num_envs, "num_envs"))
        if (warning := too_short_sighted(method, self.shape.window_size)) is not None:
            warnings.warn(warning, stacklevel=2)

    def _set_up(self, method: Method, spaces: Spaces, seed: int) -> None:
        self.method = method
        self.spaces = spaces
        self.seed = seed
        self.steps = 0
        """How many environment steps the agent has learned from."""
        self.env_errors = 0
        """How often environments were made anew because they had failed."""
        self.learner = Learner(method.trained, spaces.shape, seed, method.training.precision)
        self.journal = Journal()
        self.env: AnyEnv | None = None
        self.folder: Path | None = None
        """The run folder that it was loaded from or has written to."""
        self.interrupt = Interrupt()
        """Whether the user asks to stop, while learning."""
        self._plain_policy: PlainPolicy | None = None
        self._plain_of: Any = None  # the parameters that it was made of
        self._warned = False  # of exploding values
        self.checked = 0
        """After how many steps the parameters were last found to be finite."""
        self.saved: checkpoint.Checkpoint | None = None
        """The last checkpoint with a replay that was written or read."""
        self._second_env: AnyEnv | None = None
        self._num_envs = 1
        self._attached: Loop | None = None
        names = ("exploration", "sampling", "prediction")
        streams = np.random.SeedSequence([seed, 0xB1A7ED]).spawn(len(names))
        self._generators = dict(zip(names, map(np.random.default_rng, streams), strict=True))

    def _attach(
        self,
        env: AnyEnv | VectorEnv[Any, Any, Any],
        num_envs: int,
        reading: AbstractContextManager[None] | None = None,
    ) -> None:
        self.env = None if isinstance(env, VectorEnv) else env
        lanes = lanes_of(env, num_envs, self.seed)
        self._num_envs = len(lanes.observation)
        with reading or contextlib.nullcontext():
            experience = self.method.training.experience(
                self.method.backbone, self.shape, self._num_envs, self._generators["sampling"]
            )
        exploration = self._generators["exploration"]
        self._attached = Loop(self.method, self.learner, lanes, experience, exploration)

    @property
    def shape(self) -> ProblemShape:
        """The problem's sizes."""
        return self.spaces.shape

    @property
    def loop(self) -> Loop:
        """The environments, and what is learned from them."""
        if self._attached is None:
            raise ValueError("This agent has no environment: load it with Agent.load(folder, env).")
        return self._attached

    @property
    def metrics(self) -> Metrics:
        """What the last update reported."""
        return {} if self._attached is None else self._attached.metrics

    @property
    def history(self) -> list[dict[str, float]]:
        """The rows logged so far."""
        return self.journal.rows

    @property
    def evaluations(self) -> list[dict[str, float]]:
        """The rows that hold an evaluation, with its ``return_mean``."""
        return [row for row in self.history if "return_mean" in row]

    def learn(
        self,
        total_timesteps: float,
        *,
        callback: CallbackLike | Sequence[CallbackLike] | None = None,
        progress_bar: bool = False,
        out: str | Path | None = None,
        eval_every: int | None = None,
        eval_episodes: int | None = None,
        eval_env: AnyEnv | None = None,
        log_every: int | None = None,
        checkpoint_every: int | None = None,
        checkpoint_minutes: float | None = None,
        on_env_error: str = "stop",
        step_timeout: float | None = None,
        tensorboard: bool = False,
        wandb: bool = False,
    ) -> Agent:
        """Learn for some more environment steps. Calling it again goes on where it stopped.

        Ctrl-C and SIGTERM stop between two steps; what ``out`` asked for is saved first.

        Args:
            total_timesteps: how many steps to take; with 0 there is just the evaluation at the end.
            callback: a `Callback`, a function of the agent that may return False, or a list.
            progress_bar: show steps per second, the last return and the time left; lines instead of
                a bar where there is no terminal.
            out: a run folder, for ``config.json``, ``progress.csv``, ``checkpoint/``, and ``best/``
                with the agent of the best evaluation. Then there are evaluations, one of them at
                the end; an `Evaluate` among the callbacks says how.
            eval_every: how many steps lie between two evaluations (5,000), also without ``out``.
            eval_episodes: how many episodes an evaluation has (10).
            eval_env: where to evaluate; by default another environment like the agent's.
            log_every: how many steps lie between two rows that need no evaluation (1,000).
            checkpoint_every: how many steps lie between two checkpoints (50,000); one comes at the
                end.
            checkpoint_minutes: how many minutes lie between two checkpoints at most (5).
            on_env_error: when an environment raises, "stop", after saving, or "rebuild" it and go
                on without the open episodes; ``env_errors`` counts how often that was.
            step_timeout: after how many seconds a step has failed, for an `AsyncVectorEnv`, whose
                environments may hang in processes of their own.
            tensorboard: also write event files to ``out/tensorboard``.
            wandb: also send rows to Weights & Biases (needs the extra ``wandb``).
        """
        goal = self.steps + non_negative_int(total_timesteps, "total_timesteps")
        asked = Options(
            out=None if out is None else Path(out),
            eval_every=eval_every,
            eval_episodes=eval_episodes,
            eval_env=eval_env,
            log_every=log_every,
            checkpoint_every=checkpoint_every,
            checkpoint_minutes=checkpoint_minutes,
            on_env_error=on_env_error,
            tensorboard=tensorboard,
            wandb=wandb,
        )
        if on_env_error == "rebuild" and self.env is None:
            raise ValueError('on_env_error="rebuild" is for single environments.')
        self.loop.lanes.wait_at_most(optional(positive)(step_timeout, "step_timeout"))
        callbacks = asked.callbacks(self, as_callbacks(callback), goal)
        bar = [ProgressBar(goal)] if progress_bar else []
        Session(self, asked, [*callbacks, *bar]).learn(goal)
        return self

    def require_finite(self) -> None:
        """Stop if learning has gone wrong beyond repair.

        Raises:
            LearningError: if a parameter is NaN or infinite.
        """
        self.checked = self.steps
        if not self.learner.is_finite():
            saved = self.folder is not None and checkpoint.exists(self.folder)
            where = f" The last checkpoint in {self.folder} is good." if saved else ""
            raise LearningError(
                f"After {self.steps} steps a parameter is NaN or infinite, so nothing more can be "
                f"learned.{where} Look at td_loss and value_largest; a smaller learning_rate or "
                "smaller rewards may help."
            )

    def log(self, row: Row, not_learning: float = 0.0) -> None:
        """Log a row of numbers at the current step.

        The row also gets the time, the last update's metrics, and the returns of the training
        episodes that ended since the last row.

        Args:
            row: the numbers.
            not_learning: seconds just spent on something else than learning.
        """
        self.journal.leave_out(not_learning)
        if self._attached is not None:
            errors = {"env_errors": self.env_errors} if self.env_errors else {}
            row = {**self._attached.episodes.summary(), **self.metrics, **errors, **row}
            self._warn_of_exploding_values(row)
        self.journal.write(self.steps, row)

    def _warn_of_exploding_values(self, row: Row) -> None:
        """Warn, once, if values are far beyond what the rewards seen so far could add up to."""
        gamma = self.method.gamma**self.loop.episodes.shortest_step
        if "value_largest" not in row or gamma == 1 or self._warned:
            return
        bonus = abs(float(row.get("temperature", 0)) * float(row.get("entropy", 0)))
        possible = (max(1.0, self.loop.episodes.largest_reward) + bonus) / (1 - gamma)
        if float(row["value_largest"]) > 10 * possible:
            self._warned = True
            warnings.warn(
                f"After {self.steps} steps a critic says {float(row['value_largest']):.3g}, but "
                f"rewards like those so far cannot add up to more than {possible:.3g}: values are "
                "exploding. A smaller learning_rate may help.",
                stacklevel=3,
            )

    def predict(
        self,
        observation: npt.ArrayLike,
        state: None = None,
        episode_start: None = None,
        deterministic: bool = True,
    ) -> tuple[npt.NDArray[Any], None]:
        """Return the action for an observation, or the actions for a batch of them.

        The signature is Stable-Baselines3's; there is no recurrent state, so it is always None.
        """
        batch = self.spaces.batch_of(observation)
        if deterministic:
            policy = self._plain()
            if policy is not None:  # for one observation JAX would take longer to start
                return self.spaces.shaped(policy(observation)), None
            actions = self.learner.mode(batch)
        else:
            shape = (len(batch), self.shape.action_size)
            noise = self._generators["prediction"].standard_normal(shape, np.float32)
            actions = self.learner.act(batch, noise)
        actions = self.spaces.to_env(actions)
        return (actions if np.ndim(observation) == 2 else actions[0]), None

    def _plain(self) -> PlainPolicy | None:
        """The policy without JAX, if there is one; it is made anew when the agent has learned."""
        if self._plain_of is not self.learner.leaves:
            plain = self.method.trained.plain(self.learner.state.actor)
            self._plain_policy = plain and plain.within(self.spaces.low, self.spaces.high)
            self._plain_of = self.learner.leaves
        return self._plain_policy

    def export(self, path: str | Path) -> None:
        """Write the deterministic policy to a file that needs neither this library nor JAX.

        Args:
            path: ``*.onnx`` (needs the extra ``onnx``) or ``*.npz``, for NumPy alone.

        Raises:
            ValueError: if it is neither, or the policy is of a kind that cannot be exported.
        """
        policy = self._plain()
        if policy is None:
            raise ValueError(
                "This policy cannot be exported: its backbone has a `mode` of its own, or its "
                "actor is no single network."
            )
        export(policy, Path(path))

    def evaluate(
        self, episodes: int = 10, *, env: AnyEnv | None = None, seed: int | None = None
    ) -> Evaluation:
        """Play episodes with the deterministic policy, on an environment apart from training's.

        Args:
            episodes: how many.
            env: where to play; by default another environment like the agent's.
            seed: of the episodes; by default the agent's, so that they are the same every time.
        """
        episodes = positive_int(episodes, "episodes")
        seed = self.seed if seed is None else non_negative_int(seed, "The seed")
        env = self.evaluation_env(env)
        return evaluate(
            env,
            self.learner.mode,
            self.spaces,
            episodes=episodes,
            seed=seed,
            gamma=self.method.gamma,
        )

    def play(self, *, seed: int = 0, env: AnyEnv | None = None) -> Episode:
        """Play one episode with the deterministic policy and return all that happened."""
        return play_episode(self.evaluation_env(env), self.learner.mode, self.spaces, seed)

    def credit(self, episode: Episode) -> npt.NDArray[np.float64]:
        """Say which steps earned the reward.

        For methods with a credit rule it is what the rule gives each step; for the others, if they
        have a history function, H(τ_{t_i−c:j+1}) − H(τ_{t_i−c:j}) for each step j. Steps whose
        interval's reward was never revealed have no credit: NaN.

        Args:
            episode: what `play` returned.
        """
        return credit_of(self.method, self.learner.state, self.shape, episode)

    def plot_credit(
        self,
        path: str | Path = "credit.png",
        episode: Episode | None = None,
        *,
        seed: int = 0,
        env: AnyEnv | None = None,
    ) -> Path:
        """Draw which steps earned the reward, beside what was revealed and, if known, hidden.

        Args:
            path: the picture to write, ``*.png``, ``*.svg`` or ``*.pdf``.
            episode: what `play` returned; by default an episode is played.
            seed: of the episode that is played.
            env: where to play it.

        Returns:
            The path.
        """
        from belated.analysis.agent_figures import credit_chart  # (late: Matplotlib is slow)

        episode = self.play(seed=seed, env=env) if episode is None else episode
        return credit_chart(episode, self.credit(episode), Path(path))

    def evaluation_env(self, env: AnyEnv | None = None) -> AnyEnv:
        """An environment to evaluate in: the given one, or another one like the agent's.

        Raises:
            ValueError: if it is of another kind than the agent's, or if none can be made.
        """
        if env is None and self._second_env is None:
            if self.env is None:
                raise ValueError(_PASS)
            try:
                (self._second_env,) = copies_of(self.env, 1)
            except ValueError as error:
                raise ValueError(f"{error} {_PASS}") from error
        found = self._second_env if env is None else env
        if not isinstance(found, gym.Env):
            raise ValueError(f"Evaluate in one gymnasium.Env at a time, not in {found!r}.")
        self.spaces.require_same(found)
        return found

    def save(self, folder: str | Path, *, replay: bool = False) -> None:
        """Save the agent to a folder.

        Args:
            folder: where to; an agent that is there already is replaced.
            replay: also save the replay and the open episodes, so that learning can go on exactly
                where it stopped.

        Raises:
            LearningError: if parameters are not finite; an agent that is there already stays.
        """
        self.require_finite()
        manifest: dict[str, Any] = {
            "belated": belated.__version__,
            "method": to_json(self.method),
            "spaces": self.spaces.state(),
            "seed": self.seed,
            "steps": self.steps,
            "num_envs": self._num_envs,
            "env_errors": self.env_errors,
            "metrics": {name: float(value) for name, value in self.metrics.items()},
            "generators": {
                name: generator.bit_generator.state for name, generator in self._generators.items()
            },
        }
        loop, logs = (self.loop.state(), self.loop.experience.logs) if replay else (None, ())
        written = checkpoint.write(
            Path(folder),
            manifest,
            self.journal.state(),
            self.learner.state,
            loop,
            logs,
            self.saved,
        )
        if replay:
            self.saved = written

    @classmethod
    def load(
        cls,
        folder: str | Path,
        env: AnyEnv | VectorEnv[Any, Any, Any] | None = None,
    ) -> Agent:
        """Load a saved agent, or the checkpoint of a run folder.

        Loading runs no code from the folder, so it makes no environment: without ``env`` the agent
        can predict; with it, it can be evaluated and go on learning. If the replay was saved, it
        goes on exactly where it stopped; only a vector environment that is none of Gymnasium's own,
        so that it cannot be brought back to where it was, starts new episodes.

        Args:
            folder: a run folder or a saved agent.
            env: an environment of the same kind as before; as many copies of it are made as there
                were.
        """
        path = checkpoint.find(Path(folder))
        saved = checkpoint.Reader(path)
        manifest = saved.manifest
        agent = cls.__new__(cls)
        with checkpoint.reading(path):
            spaces = Spaces.restored(manifest["spaces"])
            method = from_json(manifest["method"])
            require_plausible(method.trained, spaces.shape, saved.state_size)
            agent._set_up(method, spaces, non_negative_int(manifest["seed"], "The seed"))
            agent.learner.leaves = saved.state(agent.learner.state)
            agent.steps = non_negative_int(manifest["steps"], "The number of steps")
            agent._num_envs = positive_int(manifest["num_envs"], "num_envs")
            agent.env_errors = non_negative_int(manifest.get("env_errors", 0), "env_errors")
            agent.journal.restore(saved.journal())
            for name, state in manifest["generators"].items():
                agent._generators[name].bit_generator.state = state
            metrics = {name: float(value) for name, value in manifest["metrics"].items()}
            arrays = saved.loop() if saved.holds_loop else None
            if arrays is not None and agent._num_envs != len(arrays["episodes.open"]):
                raise ValueError(f"it is not of {agent._num_envs} environments.")
        if path.parent == Path(folder):  # a run's checkpoint
            agent.folder = Path(folder).resolve()
        if env is not None:
            spaces.require_same(env)
            copies = 1 if isinstance(env, VectorEnv) else agent._num_envs
            if arrays is None and copies > _MOST_COPIES:
                raise checkpoint.CheckpointError(f"{path} asks for {copies} environments.")
            agent._go_on(env, copies, saved, arrays)
            agent.loop.metrics = metrics
        return agent

    def _go_on(
        self,
        env: AnyEnv | VectorEnv[Any, Any, Any],
        copies: int,
        saved: checkpoint.Reader,
        arrays: checkpoint.Arrays | None,
    ) -> None:
        """Take over the replay and the open episodes, if they were saved."""
        lanes = self._num_envs
        self._attach(env, copies, checkpoint.reading(saved.folder))
        if arrays is None:
            return
        if self._num_envs != lanes:
            raise ValueError(
                f"The agent learned in {lanes} environments at once, not in {self._num_envs}; its "
                "replay fits those only."
            )
        with checkpoint.reading(saved.folder):
            self.saved = saved.fill(self.loop.experience.logs)
            self.loop.restore(arrays)
        try:
            self.loop.restore_environments(arrays)
        except RepeatError as error:
            raise checkpoint.CheckpointError(
                f"Cannot go on from {saved.folder}: {error}"
            ) from error
