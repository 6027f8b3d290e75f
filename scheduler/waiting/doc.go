// Package waiting drives the queue machine of package contention for everything that reads a cluster as Kubernetes
// objects: the plugins of all profiles of one process, and what-if questions. It translates PodGroups, pods and views
// of the fleet into the machine's values, and its answers back into names. It has no rule of its own about the order of
// the queue.
//
// The machine knows one numbering of nodes and one list of resources at a time; views of different profiles, of
// required topology keys and of claimed devices differ in both. Leased places are therefore stored by node name, and
// translated when the coordinates change.
package waiting
