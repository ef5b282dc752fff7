"""Protocols: how sums of users' messages are published.

* ``Exact`` - as they are
* ``Central`` - with noise of a trusted curator
* ``ShuffledBits`` - as bits, mixed with noise bits
* ``ShuffledReports`` - as messages with the users' own noise, mixed

A protocol of your own is a subclass of ``Protocol``; a boundary around it is a subclass of ``Boundary``.
"""

from private_rl_gym.privacy.protocols.base import ClosedBatch, Options, Protocol, ProtocolPlan
from private_rl_gym.privacy.protocols.central import Central, CentralOptions
from private_rl_gym.privacy.protocols.exact import Exact
from private_rl_gym.privacy.protocols.shuffled_bits import BitsOptions, ShuffledBits
from private_rl_gym.privacy.protocols.shuffled_reports import ReportsOptions, ShuffledReports

__all__ = [
    "BitsOptions",
    "Central",
    "CentralOptions",
    "ClosedBatch",
    "Exact",
    "Options",
    "Protocol",
    "ProtocolPlan",
    "ReportsOptions",
    "ShuffledBits",
    "ShuffledReports",
]
