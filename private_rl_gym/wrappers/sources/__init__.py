"""Sources of users: where trajectories come from.

* ``Source`` - users who run a policy, in groups
* ``EnvironmentSource`` - users of an environment whose states and actions are counted
* ``NetworkSource`` - users of any environment, who run policy networks
* ``UserSteps`` - one user who is met step by step
* ``TableSource``, ``read`` - users whose episodes are over
* ``quietly``, ``frameless`` - failures without a user's data in them
"""

from __future__ import annotations

from private_rl_gym.wrappers.sources.base import TRANSPARENT, Source, countable, layers, plain_generator
from private_rl_gym.wrappers.sources.columns import COLUMNS, ids_of
from private_rl_gym.wrappers.sources.encoding import ActionCode, ObservationCode
from private_rl_gym.wrappers.sources.environment import EnvironmentSource
from private_rl_gym.wrappers.sources.network import NetworkSource
from private_rl_gym.wrappers.sources.quiet import BadUserError, bare, frameless, quietly
from private_rl_gym.wrappers.sources.recorders import refuse_recorders, refused
from private_rl_gym.wrappers.sources.report import BadRowsError, TableReport
from private_rl_gym.wrappers.sources.rows import Episodes
from private_rl_gym.wrappers.sources.steps import UserSteps
from private_rl_gym.wrappers.sources.table import TableSource, read

__all__ = [
    "COLUMNS",
    "TRANSPARENT",
    "ActionCode",
    "BadRowsError",
    "BadUserError",
    "EnvironmentSource",
    "Episodes",
    "NetworkSource",
    "ObservationCode",
    "Source",
    "TableReport",
    "TableSource",
    "UserSteps",
    "bare",
    "countable",
    "frameless",
    "ids_of",
    "layers",
    "plain_generator",
    "quietly",
    "read",
    "refuse_recorders",
    "refused",
]
