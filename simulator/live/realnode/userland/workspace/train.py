"""Trains with XGBoost where the environment is that of its workers, with torch elsewhere."""

import os
import sys

import trainings

if "DMLC_TASK_ID" in os.environ:
    trainings.xgboost_ranks()
elif "RANK" in os.environ:
    trainings.torch_ddp()
else:
    # The image's own command, as images of torch have it: torchrun reads PET_*, and starts this program with a rank.
    os.execvp("torchrun", ["torchrun", sys.argv[0]])
