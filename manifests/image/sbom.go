package image

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// MediaTypeSBOM is that of the bill of materials: CycloneDX as JSON.
const MediaTypeSBOM = "application/vnd.cyclonedx+json"

// bom has the fields of a CycloneDX 1.6 document (cyclonedx.org/docs/1.6/json) that are written.
type bom struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

// SBOM returns a CycloneDX document that lists the standard library and every module linked into the binary, read from
// its build information.
func SBOM(c Command, of Source, binary string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", binary, err)
	}
	self := module(&info.Main, "application")
	self.Name, self.Version = c.Name, of.Version
	out := bom{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{Timestamp: of.Created.UTC().Format(time.RFC3339), Component: self},
	}
	standard := component{Type: "library", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}
	standard.PURL = "pkg:golang/std@" + standard.Version
	standard.Ref = standard.PURL
	out.Components = append(out.Components, standard)
	for _, dep := range info.Deps {
		out.Components = append(out.Components, module(dep, "library"))
	}
	slices.SortFunc(out.Components, func(a, b component) int { return cmp.Compare(a.Ref, b.Ref) })
	needs := dependency{Ref: self.Ref}
	for _, of := range out.Components {
		needs.DependsOn = append(needs.DependsOn, of.Ref)
	}
	out.Dependencies = []dependency{needs}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("printing a bill of materials: %w", err)
	}
	return append(text, '\n'), nil
}

// module is a Go module, as it was built: a replaced module has the name of its replacement.
func module(m *debug.Module, kind string) component {
	if m.Replace != nil {
		m = m.Replace
	}
	out := component{Type: kind, Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path}
	if m.Version != "" {
		out.PURL += "@" + m.Version
	}
	out.Ref = out.PURL
	if m.Sum != "" {
		out.Properties = []property{{"cdx:gomod:sum", m.Sum}}
	}
	return out
}
