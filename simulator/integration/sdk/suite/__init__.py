"""Calls of the Kubeflow SDK against a cluster with Lockstep, and what each has to answer."""
