"""Statistics: maps from trajectories to vectors of whole numbers, with their sensitivity.

* ``Statistic``, ``Sensitivity`` - the interface
* ``TabularCounts``, ``PooledCounts`` - visits, transitions and rewards, by stage or over all stages
* ``Reports`` - single steps in wanted cells
* ``LinearMoments`` - matrices and vectors of least squares
* ``Gradients`` - clipped gradients of a policy network
* ``Dynamics`` - corrections of a model of the world
"""

from private_rl_gym.privacy.statistics.base import About, Alphabet, Sensitivity, Statistic, check_scale
from private_rl_gym.privacy.statistics.dynamics import Dynamics
from private_rl_gym.privacy.statistics.gradients import Gradients
from private_rl_gym.privacy.statistics.moments import LinearMoments, MomentLevels
from private_rl_gym.privacy.statistics.pooled import PooledCounts, ReportedSteps
from private_rl_gym.privacy.statistics.reports import Reports
from private_rl_gym.privacy.statistics.tabular import TabularCounts, TabularSteps

__all__ = [
    "About",
    "Alphabet",
    "Dynamics",
    "Gradients",
    "LinearMoments",
    "MomentLevels",
    "PooledCounts",
    "ReportedSteps",
    "Reports",
    "Sensitivity",
    "Statistic",
    "TabularCounts",
    "TabularSteps",
    "check_scale",
]
