// Package dialects holds the dialects that ship as rows of the scheduler's configuration, one file for each.
package dialects

import "embed"

// Files holds the rows under their file names.
//
//go:embed *.yaml
var Files embed.FS
