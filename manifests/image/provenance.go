package image

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	oci "github.com/google/go-containerregistry/pkg/v1"
)

// MediaTypeProvenance is that of an in-toto statement.
const MediaTypeProvenance = "application/vnd.in-toto+json"

// statement is an in-toto statement with SLSA provenance 1.0 (slsa.dev/spec/v1.0/provenance).
type statement struct {
	Type          string     `json:"_type"`
	Subject       []subject  `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type provenance struct {
	BuildDefinition definition `json:"buildDefinition"`
	RunDetails      details    `json:"runDetails"`
}

type definition struct {
	BuildType            string            `json:"buildType"`
	ExternalParameters   map[string]string `json:"externalParameters"`
	InternalParameters   map[string]string `json:"internalParameters"`
	ResolvedDependencies []resource        `json:"resolvedDependencies"`
}

type resource struct {
	Name   string            `json:"name,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type details struct {
	Builder map[string]string `json:"builder"`
}

// buildType names how the images are made: by this project's Makefile.
const buildType = "https://lockstep.dev/build/make-images/v1"

// revision is a source's revision as a digest set of in-toto: a commit, or the sum of a Go module, in hexadecimal.
func revision(of Source) map[string]string {
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(of.Revision, "h1:")); err == nil &&
		strings.HasPrefix(of.Revision, "h1:") {
		return map[string]string{"dirHash1": hex.EncodeToString(sum)}
	}
	return map[string]string{"gitCommit": of.Revision}
}

// Provenance returns an image's provenance: its source, toolchain and settings. It is not signed: the publisher of the
// image signs both.
func Provenance(c Command, of Source, digest oci.Hash, binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", binary, err)
	}
	settings := map[string]string{"go": info.GoVersion}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	text, err := json.MarshalIndent(statement{
		Type:          "https://in-toto.io/Statement/v1",
		Subject:       []subject{{c.Name, map[string]string{digest.Algorithm: digest.Hex}}},
		PredicateType: "https://slsa.dev/provenance/v1",
		Predicate: provenance{
			BuildDefinition: definition{
				BuildType:          buildType,
				ExternalParameters: map[string]string{"command": info.Path, "version": of.Version},
				InternalParameters: settings,
				ResolvedDependencies: []resource{
					{Name: info.Main.Path, Digest: revision(of)},
				},
			},
			RunDetails: details{Builder: map[string]string{"id": buildType}},
		},
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("printing how an image was made: %w", err)
	}
	return append(text, '\n'), nil
}
