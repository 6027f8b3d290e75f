// Package migrate makes TrainJobs and RuntimePatches of manifests that were written for older controllers.
//
// Documents takes a run's objects as values and returns what to write instead of them, and one note for every field
// that does not appear there as it was. It reads no files and knows no clock. There is one file for each kind:
//
//   - trainjob.go, overrides.go: TrainJobs of Kubeflow Trainer 2.0 and 2.1.
//   - runtime.go: their TrainingRuntimes and ClusterTrainingRuntimes.
//   - pytorch.go, jax.go, xgboost.go, mpi.go: the jobs of the training operator and of the MPI operator.
//
// A job of the old operators becomes a TrainingRuntime called <job>-runtime in the job's namespace, which keeps the pod
// template whole, and a TrainJob of the job's own name, which says how many nodes, and until when. Where a job has two
// pod templates for what is now one (Master and Worker), all nodes get Worker's if there are workers, else Master's;
// every place where the other one differs is named in a note.
//
// What reads the environment is the user's program: it is never rewritten. Notes name the variables that it has now.
package migrate
