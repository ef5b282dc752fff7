"""A private model of continuous states, and any learner that is trained in it.

* ``fit`` - the model, and how releases correct it
* ``simulation`` - the model as a vector environment
* ``learners`` - Stable-Baselines3's learners, and the networks in them
* ``world_model`` - the agent
"""
