// Package framework configures how the processes of a training job find each other: one file for each framework.
//
// A framework reads an Input and returns a Contribution. It never sees the objects that are rendered, and so cannot
// change them; package plan is the only place that merges contributions. To add a framework, write a file, add a word
// to All and golden cases to controller/plan/testdata.
package framework
