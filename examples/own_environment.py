"""An environment of your own behind a boundary.

A boundary takes any ``gym.Env`` whose users have a horizon and a range of rewards. Here users are visitors of a shop,
and the learner chooses whether to show each a discount. The observation is a dictionary, and a purchase pays up to 2.
Counting needs finite states, which ``FlattenSpaces`` makes, and rewards in [0, 1], which ``reward_range=`` makes. You
see the error that asks for finite states. Then you see a private learner that sells more than discounts for all
visitors or for none.

    python examples/own_environment.py --users 8000
"""

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from private_rl_gym.agents import FrugalUCBVI
from private_rl_gym.wrappers import FlattenSpaces, JDPBillboard


class Shop(gym.Env):
    """Visitors of a shop, who see five pages.

    A discount helps visitors who hesitate, and gives money away to the others.
    """

    observation_space = spaces.Dict({"basket": spaces.Discrete(3), "hesitates": spaces.Discrete(2)})
    action_space = spaces.Discrete(2)  # no discount, discount

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start the episode of a visitor."""
        super().reset(seed=seed)
        self.basket, self.hesitates = 0, int(self.np_random.random() < 0.5)
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Show a page with or without a discount."""
        chance = (0.6 if action else 0.1) if self.hesitates else 0.6
        bought = self.np_random.random() < chance
        reward = (1.0 + 0.5 * self.basket) * (0.5 if action else 1.0) * bought
        self.basket = min(2, self.basket + int(bought))
        return self._seen(), reward, False, False, {}

    def _seen(self) -> dict[str, int]:
        return {"basket": self.basket, "hesitates": self.hesitates}


def sold(act: Any) -> float:
    """Return the mean sales to 2,000 other visitors."""
    env, total = FlattenSpaces(Shop()), 0.0
    for user in range(2_000):
        seen, state = env.reset(seed=user)[0], None
        for _ in range(5):
            action, state = act(seen, state)
            seen, reward, *_ = env.step(action)
            total += reward
    return total / 2_000


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An environment of your own behind a boundary.")
    parser.add_argument("--users", type=int, default=8_000)
    args = parser.parse_args()
    options: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6, "users": args.users, "horizon": 5}
    try:
        JDPBillboard(Shop(), **options, statistic="tabular")
    except (TypeError, ValueError) as error:
        print(f"{type(error).__name__}: {error}\n")
    board = JDPBillboard(FlattenSpaces(Shop()), **options, reward_range=(0.0, 2.0), stationary=True)
    agent = FrugalUCBVI("TabularPolicy", board, seed=0).learn(args.users * 5)
    print(repr(agent))
    for name, act in (
        ("for no user", lambda *_: (0, None)),
        ("for every user", lambda *_: (1, None)),
        ("for whom the agent chooses", lambda seen, state: agent.predict(np.array(seen), state)),
    ):
        print(f"discounts {name:27} {sold(act):.2f}")
