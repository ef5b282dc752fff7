"""An agent of your own: one method, ``plan``, makes a policy from the newest release.

This agent is epsilon-greedy in the model that the noisy counts suggest. Everything else is inherited: ``learn``,
``predict``, ``save``, callbacks, logs, and the guarantee of the boundary. A release has ``n`` (visits), ``m``
(transitions), ``r`` (sums of rewards) and ``noise_std``. An agent gets nothing else about users, so it needs no proof
of its own. You see its value beside that of ``DPUCBVI``, whose bonus explores on purpose, on the same river under the
same guarantee.

    python examples/own_agent.py --users 20000

In grids, and on the command line, it is ``own_agent:EpsilonGreedy``:

    private-rl-gym train --agent own_agent:EpsilonGreedy --set agent.explore=0.2
"""

import argparse
from typing import Any

import gymnasium as gym
import numpy as np

import private_rl_gym  # noqa: F401 - registers the environments
from private_rl_gym.agents import DPUCBVI, Agent
from private_rl_gym.planning import Policy, backward_induction
from private_rl_gym.wrappers import JDPBillboard


class EpsilonGreedy(Agent):
    """An agent that plays the best estimated policy, and some random actions."""

    color = "#5a3fc0"  # in figures

    def __init__(
        self, policy: str | None = "TabularPolicy", env: Any = None, *, explore: float = 0.1, **options: Any
    ) -> None:
        self.explore = explore  # an attribute of that name: so it is saved
        super().__init__(policy, env, **options)

    def plan(self, release: Any) -> Policy:
        """Return a policy from the model, in which counts smaller than the noise are ignored."""
        # [h, s, a, s'], [h, s, a]
        heard = release.n > 2.0 * release.noise_std["n"]
        visits = np.maximum(release.n, 1.0)
        rewards = np.where(heard, np.clip(release.r / visits, 0.0, 1.0), 1.0)  # the unknown is tried
        chances = np.where(heard[..., None], np.maximum(release.m, 0.0), 1.0) + 1e-9
        chances /= chances.sum(axis=-1, keepdims=True)
        greedy = backward_induction(chances, rewards, self.horizon).policy.probabilities
        return Policy(np.asarray((1.0 - self.explore) * greedy + self.explore / greedy.shape[-1]), greedy.shape[-1])

    def best_policy(self) -> Policy:
        """Return the policy without exploration, which ``predict`` plays."""
        return Policy(self.policy.probabilities.argmax(axis=-1), self.policy.n_actions)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An agent of your own.")
    parser.add_argument("--users", type=int, default=20_000)
    args = parser.parse_args()
    for kind in (EpsilonGreedy, DPUCBVI):
        env = gym.make("PrivateRL/RiverSwim-v0", horizon=8, n_states=4)
        board = JDPBillboard(env, epsilon=5.0, delta=1e-6, users=args.users, schedule=100)
        agent = kind("TabularPolicy", board, seed=0).learn(args.users * 8)
        truth = env.unwrapped.model
        print(repr(agent))
        print(f"worth {truth.value_of(agent.best_policy()):.3f} of {truth.optimal_value():.3f}\n")
