// Package anonymize gives everything in API objects that has a name of its own another name, so that a snapshot can be
// handed on, and a scheduler decides about it as about the original.
//
// One list of names holds for all objects and all fields: the same text has the same pseudonym everywhere, so every
// reference, selector and match still holds. A pseudonym is a number with a word for the kind of the original,
// "x0042-node". The numbers are in the order of the originals: nodes and the values of their labels as topology orders
// them (tray-2 before tray-10), everything else by byte, as gangs order their pods. So ties are broken as before, and
// the result is a function of the objects alone. Only a pod or a namespace that is named like a node or a domain loses
// its place in the order.
//
// Every text is replaced unless a rule says why not. These are retained, because placement reads their content:
//
//   - the words that Kubernetes, JobSet and Kubeflow Trainer define (see word), booleans, and numbers of at most five
//     digits, such as the indices that ranks are made of; longer ones where a selector compares by value (Gt, Lt);
//   - keys of labels, annotations and taints below the domains of own, and the keys and names of the levels that topology
//     knows; their values are replaced;
//   - names of resources, quantities, instants, and everything that Go has a type of its own for, enumerations above all;
//   - the annotations lockstep.dev/…, in which only names are replaced;
//   - of devices: drivers, attributes, capacities, and CEL expressions as they are written, with the values of the
//     attributes that some expression names. A user who does not want to disclose these reads the expressions before
//     handing the file on.
//
// Messages for people and the parameters of drivers are dropped.
package anonymize
