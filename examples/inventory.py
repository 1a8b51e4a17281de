"""A shop that gets its bill once a week: discrete orders, a late reward, and the exact optimum."""

import argparse
from typing import Any

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import belated

WEEK, SHELF, LARGEST, GAMMA = 7, 12, 6, 0.97
DELIVERY, STORAGE, LOST_SALE = 4.0, 0.3, 5.0
DEMAND = np.array([0.1, 0.2, 0.25, 0.2, 0.15, 0.1])  # the chances of 0 to 5 customers a day


class Inventory(gym.Env[Any, Any]):
    """Each morning order up to six pieces, as many as the shelf holds; bills come on Sundays."""

    observation_space = gym.spaces.Discrete(SHELF + 1)  # pieces on the shelf
    action_space = gym.spaces.Discrete(LARGEST + 1)  # pieces ordered

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.stock, self.day, self.bill = SHELF // 2, 0, 0.0
        return self.stock, self._info()

    def _info(self) -> dict[str, Any]:
        fits = self.stock + np.arange(LARGEST + 1) <= SHELF
        return {"action_mask": fits.astype(np.int8), "sunday": self.day % WEEK == 0 < self.day}

    def step(self, action: Any) -> Any:
        demand = self.np_random.choice(len(DEMAND), p=DEMAND)
        self.bill += cost(self.stock, int(action), demand)
        self.stock, self.day = max(self.stock + int(action) - demand, 0), self.day + 1
        info = self._info()
        reward, self.bill = (-self.bill, 0.0) if info["sunday"] else (0.0, self.bill)
        return self.stock, reward, False, False, info


def cost(stock: int, order: int, demand: int) -> float:
    """What a day adds to the bill."""
    left = stock + order - demand
    return DELIVERY * (order > 0) + STORAGE * max(left, 0) + LOST_SALE * max(-left, 0)


def shop() -> gym.Env[Any, Any]:
    """The environment as an agent sees it; nothing tells it what a single day has cost."""
    env = gym.wrappers.TimeLimit(Inventory(), 12 * WEEK)
    return belated.mark(env, max_length=WEEK, info_key="sunday", action_masks=True)


def bills(order: Any) -> Any:
    """The discounted bills to come, for each day of the week and stock, under a table of orders."""
    days = [(day, stock) for day in range(WEEK) for stock in range(SHELF + 1)]
    moves, due = np.zeros((len(days), len(days))), np.zeros(len(days))
    for row, (day, stock) in enumerate(days):
        for demand, chance in enumerate(DEMAND):
            following = max(stock + order[day, stock] - demand, 0)
            moves[row, days.index(((day + 1) % WEEK, following))] += chance * GAMMA
            due[row] += chance * cost(stock, order[day, stock], demand) * GAMMA ** (WEEK - 1 - day)
    return np.linalg.solve(np.eye(len(days)) - moves, due).reshape(WEEK, SHELF + 1)


def best() -> Any:
    """The best table of orders, by policy iteration."""
    order = np.zeros((WEEK, SHELF + 1), int)
    while True:
        value, better = bills(order), order.copy()
        for day, stock in np.ndindex(order.shape):
            costs = []
            for pieces in range(min(LARGEST, SHELF - stock) + 1):
                now = np.array([cost(stock, pieces, demand) for demand in range(len(DEMAND))])
                left = np.maximum(stock + pieces - np.arange(len(DEMAND)), 0)
                later = GAMMA * value[(day + 1) % WEEK, left]
                costs.append(DEMAND @ (now * GAMMA ** (WEEK - 1 - day) + later))
            better[day, stock] = int(np.argmin(costs))
        if (better == order).all():
            return order
        order = better


def learned(agent: belated.Agent) -> Any:
    """The table of orders that an agent has learned."""
    order = np.zeros((WEEK, SHELF + 1), int)
    for day, stock in np.ndindex(order.shape):
        fits = stock + np.arange(LARGEST + 1) <= SHELF
        seen = np.concatenate([np.eye(SHELF + 1)[stock], fits, [day / WEEK]])
        order[day, stock] = agent.predict(seen.astype(np.float32))[0]
    return order


def draw(tables: dict[str, Any], path: str) -> None:
    figure = plt.figure(figsize=(4 * len(tables), 2.8), layout="constrained")
    for number, (title, order) in enumerate(tables.items(), start=1):
        panel = figure.add_subplot(1, len(tables), number)
        image = panel.imshow(order, vmin=0, vmax=LARGEST, cmap="Blues")
        panel.set(title=title, xlabel="pieces on the shelf", ylabel="days since Sunday")
    figure.colorbar(image, ax=figure.axes, label="pieces ordered")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=["crossq-hc-singleton", "dqn"])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--draw", default="inventory.png", help="a picture of what is ordered")
    arguments = parser.parse_args()
    fill_up = np.tile([6, 6, 6, 6, 6, *[0] * (SHELF - 4)], (WEEK, 1))  # with less than five left
    tables, start = {"at best": best(), "by rule": fill_up}, (0, SHELF // 2)
    print({name: f"{bills(order)[start]:.2f}" for name, order in tables.items()})
    small: dict[str, Any] = {"hidden": (64, 64), "learning_starts": 1_000, "learning_rate": 1e-3}
    for method in arguments.methods:
        for seed in range(arguments.seeds):
            agent = belated.Agent(method, shop(), seed=seed, gamma=GAMMA, **small)
            tables[method] = learned(agent.learn(arguments.steps))
            print(f"{method:16} seed {seed}: {bills(tables[method])[start]:.2f}", flush=True)
    draw(tables, arguments.draw)
