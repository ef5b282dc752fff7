"""Agents that learn a model of continuous states privately, and train a learner in it: ``WorldModelAgent``.

* ``fit`` - the model, and how releases correct it
* ``simulation`` - the model as a vector environment
* ``learners`` - Stable-Baselines3's learners, and the networks in them
* ``world_model`` - the agent
"""
