// Package devices models the output of the DRA drivers of some machines: for each model the devices of one node, with
// the attributes, capacities and counters that the drivers give them, and the DeviceClasses that the drivers install.
//
// Everything is a function of the model and the machine: the same on every machine and in every run. Values that a
// driver generates for each node (UUIDs, the ids of its rack) derive from the machine's name and labels.
package devices
