// Package badinput is the error of "exit 2": the user's input cannot be used, and one line gives the fault, the place
// and the remedy.
//
// Packages that read users' input return *Error for all faults that the user can mend; any other error is a fault of
// the machine or of ours. The command line asks with Is, and prints the line as it stands.
package badinput
