"""Trains with JAX."""

import trainings

trainings.jax_documented()
