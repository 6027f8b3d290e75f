// Package badinput is the error of "exit 2": the user gave something that cannot be used, and one line says what,
// where, and how to mend it.
//
// Packages that read what a user wrote return *Error for whatever the user can mend; any other error is a fault of the
// machine or of ours. The command line asks with Is, and prints the line as it stands.
package badinput
