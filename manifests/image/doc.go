// Package image makes OCI images of Lockstep's commands without a container engine: a static binary, the account that it runs under, and nothing else.
//
// Equal binaries make equal images: nothing in them depends on when, where or by whom they were made. The one instant that they name is that of the
// commit.
package image
