"""Environments of tabular models; each episode is one user.

There is one file for each family.

* ``TabularModel`` - transitions, rewards, start and horizon, with exact values
* ``SparseModel`` - the same for many states, each with few successors
* ``TabularEnv``, ``TabularVectorEnv`` - one user, or thousands, of any model
* ``LoggedUsers`` - the sizes of a table of finished episodes
* ``RiverSwim`` - the papers' benchmark
* ``HardMDP``, ``HardBandit`` - the instances behind the lower bounds
* ``HardLinearMixture`` - the instances behind lower bounds for linear mixtures
* ``LinearMixture``, ``RiverSwimMixture`` - mixtures of known kernels with hidden weights
* ``Garnet`` - random sparse models
* ``FrozenLake`` - Gymnasium's lake
* ``Cohort`` - patients, and a synthetic table of patients treated before
"""

from __future__ import annotations

from private_rl_gym.envs.cohort import Cohort
from private_rl_gym.envs.frozen_lake import FrozenLake
from private_rl_gym.envs.garnet import Garnet
from private_rl_gym.envs.hard import HardBandit, HardMDP
from private_rl_gym.envs.hard_mixture import HardLinearMixture
from private_rl_gym.envs.linear_mixture import LinearMixture
from private_rl_gym.envs.logged import LoggedUsers
from private_rl_gym.envs.mixture import Mixture
from private_rl_gym.envs.model import TabularModel
from private_rl_gym.envs.river_swim import RiverSwim
from private_rl_gym.envs.river_swim_mixture import RiverSwimMixture
from private_rl_gym.envs.sparse import SparseModel
from private_rl_gym.envs.tabular import TabularEnv
from private_rl_gym.envs.vector import TabularVectorEnv

__all__ = [
    "Cohort",
    "FrozenLake",
    "Garnet",
    "HardBandit",
    "HardLinearMixture",
    "HardMDP",
    "LinearMixture",
    "LoggedUsers",
    "Mixture",
    "RiverSwim",
    "RiverSwimMixture",
    "SparseModel",
    "TabularEnv",
    "TabularModel",
    "TabularVectorEnv",
]
