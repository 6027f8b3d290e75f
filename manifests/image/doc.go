// Package image makes OCI images of Lockstep's commands without a container engine: a static binary, the account that
// it runs under, and nothing else.
//
// Equal binaries make equal images: nothing in them depends on the time, place or author of the build. The one instant
// in them is that of the commit.
package image
