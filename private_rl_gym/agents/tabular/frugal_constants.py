"""The numbers in ``FrugalUCBVI`` and its model that were chosen by hand.

Each has its meaning and its reason.

They were chosen over some hundred runs on RiverSwim, HardMDP, Garnets and FrozenLake. The page of the agent has the
problems, and the effect of most of these numbers.
"""

from __future__ import annotations

# Sizes of batches -----------------------------------------------------------------------------------------------------

FIRST_BATCH, LEAST_NOISE, FIRST_USERS, FIRST_PART = 12.0, 1.5, 50.0, 20.0
"""Users in the first batch, for each cell and each deviation of noise, of which at least ``LEAST_NOISE`` count.

So every cell can stand out of the noise. The batch has 50 users at least, and else at most a 20th of all.
"""

GROWTH, GROWTH_LATER, GROWTH_LOCAL = 0.25, 0.5, 0.1
"""Users in a batch, as a share of those before: while cells are unknown; later; where users add noise themselves.

Slow growth keeps users from policies that one batch suggests; doubling cost four times as much on RiverSwim.
"""

LOCAL = 1.2
"""Growth of the noise from 1,000 to 2,000 users above which users are taken to add it themselves: that is sqrt(2)."""

LEAST_UNKNOWN = 0.25
"""Size of a batch at least, as a share of the first one: else in proportion to the cells that are unknown."""

SETTLED, LONG_BATCH = 6.0, 1000
"""Effective reports of each cell, and users in a batch, from which on a batch may ask for several dear reports.

Long batches that came earlier cost three quarters more on HardMDP.
"""

# Who explores ---------------------------------------------------------------------------------------------------------

RICH, HOPE = 0.02, 3.0
"""Value, as a share of the horizon, of a policy that is good; it falls once this many first batches have come.

While nothing better is found, a better policy becomes less likely. This mattered on FrozenLake.
"""

ENOUGH, TRIES = 0.75, 2
"""Explorers at least, as a share of the first batch; batches after which fewer of them look for what is unknown."""

CAUTION = 0.1
"""Deviations of noise that are subtracted where the best policy is chosen: values of noise alone should not win."""

GROUPS, DRAWN = 8, 4
"""Groups of explorers, and those of them who run the best policies of drawn models, once all cells are known.

Groups try different actions where nothing is known; drawn models give a second chance to actions with bad luck.
"""

QUIET, QUIET_BONUS = 0.35, 0.7
"""Doubt by noise, as a share of that by sampling, below which all explore who can, and their bonus.

Where there is little noise, the other users need no protection from exploration.
"""

OVERTAKE, BETTER, TRIAL_GROWTH = 2.0, 0.02, 4
"""Ratio of values that needs no trial; least gain, as a share of the value, of a challenger; growth of its trials."""

# Requests -------------------------------------------------------------------------------------------------------------

FIRST_ANYWHERE, FIRST_STARTS = 0.9, 0.1
"""Shares of the first users who report a random stage, and where they started: nothing is known to look for."""

ANYWHERE, STARTS = 0.5, 0.05
"""The same of later users. Random stages correct cells that look known and are wrong; a third of them was worse."""

STAGED = 0.2
"""Share of users who are asked for stages too, where stages may differ: enough to notice that they do."""

WORTH_ASKING = 0.1
"""Share in the bonuses, relative to the largest, from which on a cell is wanted once all are known."""

TARGET, TARGET_GROWTH = 10.0, 4.0
"""Effective reports that are wanted of each cell, until all have them; then four times as many, and so on."""

CHEAP = 1.2
"""Several reports are cheap if their noise is within this factor of the square root of their number."""

# The model ------------------------------------------------------------------------------------------------------------

DOUBT, STAYS = 4.0, 0.5
"""Deviations of noise that the reports of a cell must reach for the cell to become known, and to stay so.

Three and five deviations were no better.
"""

FORESIGHT = 0.5
"""Relative uncertainty of the number of reports that the model predicts, which is averaged with the number received."""

PRIOR = 100.0
"""Users that an estimate counts for in its parts, unless their own data show that it counts for more, or less."""

WORTHLESS = 2.0
"""Users that an estimate must count for in its parts, for the parts to be known by it."""

ROUNDS = 6
"""Rounds in which weights follow from the model, and the model from weights: they hardly change after these."""

OTHERS, ANYTHING, MOST_WORTH = 3.0, 0.1, 1e3
"""In drawn models: reports like those of a state's other actions, reports of anything, and an action's most weight."""
