// Package workload loads the objects that a user wants to run: TrainJobs, their runtimes, and all other objects that
// they need.
//
// Load reads files and folders of YAML and puts the objects into the order in which they can be applied. It knows the
// structure of an object and of our group, trainer.kubeflow.org, in its versions v1alpha1 and v2alpha1; the schema is
// the API server's business. Whatever the user can mend is a *badinput.Error with file and line.
package workload
