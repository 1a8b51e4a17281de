"""A short run that may be killed at any moment; started again, it goes on.

python victim.py FOLDER METHOD [ENVS]: prints "learning" when it begins or goes on.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from references import quick_options
from small_agents import delayed, small_agent

from belated import Agent
from belated.training import checkpoint, learner, row_files

STEPS = 400


def main(folder: Path, method: str, envs: int) -> None:
    """Learn what is left of the run."""
    vars(learner)["compiler_options"] = quick_options  # else most of the time would go there
    row_files.ROWS_IN_A_FILE = 32
    if checkpoint.exists(folder):
        agent = Agent.load(folder, delayed())
    else:
        (folder / "progress.csv").unlink(missing_ok=True)
        agent = small_agent(method, seed=7, num_envs=envs)
    print("learning", flush=True)
    agent.learn(
        STEPS - agent.steps,
        out=folder,
        checkpoint_every=7,
        eval_every=50,
        eval_episodes=1,
        log_every=20,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if sys.argv[3:] else 1)
