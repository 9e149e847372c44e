"""What is fitted: a model makes chains, which `dpmix.run.runner` runs.

`base` says what a model and its chains must do, `mixture` makes the chains of mixtures, and each parametric
model is one module, registered in `registry`.
"""
