"""Trains with XGBoost where the environment is that of its workers, with torch elsewhere."""

import os

import trainings

if "DMLC_TASK_ID" in os.environ:
    trainings.xgboost_ranks()
else:
    trainings.torch_ddp()
