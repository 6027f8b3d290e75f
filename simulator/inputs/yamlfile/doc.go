// Package yamlfile reads YAML and JSON that people write and remembers where everything stands.
//
// A file is split into documents as kubectl splits it, and each is read as kubectl reads it (YAML 1.1 as
// sigs.k8s.io/yaml understands it, so an unquoted on is true here as it is there). The line of any part can be asked
// for afterwards: LineOf parses a second time to find it, so only errors pay for it. Any fault of a file is a
// *badinput.Error that names file and line.
package yamlfile
