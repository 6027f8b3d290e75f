// Package migrate converts manifests that were written for older controllers into TrainJobs and RuntimePatches.
//
// Documents takes a run's objects as values and returns their replacements, and one note for every field that does not
// appear there unchanged. It reads no files and no clock. There is one file for each kind:
//
//   - trainjob.go, overrides.go: TrainJobs of Kubeflow Trainer 2.0 and 2.1.
//   - runtime.go: their TrainingRuntimes and ClusterTrainingRuntimes.
//   - pytorch.go, jax.go, xgboost.go, mpi.go: the jobs of the training operator and of the MPI operator.
//
// A job of the old operators becomes a TrainingRuntime called <job>-runtime in the job's namespace, with the whole pod
// template, and a TrainJob of the job's own name, with the number of nodes and the deadline. Where a job has two pod
// templates that become one (Master and Worker), all nodes get Worker's if there are workers, else Master's; every
// place where the other one differs is named in a note.
//
// The user's program reads the environment and is never rewritten. Notes name the variables that it now has.
package migrate
