"""Trains below mpirun."""

import trainings

trainings.mpi_ranks()
