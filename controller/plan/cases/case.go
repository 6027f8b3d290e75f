package cases

import (
	"fmt"
	"slices"
	"strings"
)

// Names of parts. Further answers of Kubeflow Trainer's are upstream-2.yaml and so on.
const (
	TrainJob      = "trainjob.yaml"
	Runtime       = "runtime.yaml"
	Options       = "options.yaml"
	Cluster       = "cluster.yaml"
	Upstream      = "upstream.yaml"
	UpstreamError = "upstream-error.txt"
	Want          = "want.yaml"
	WantError     = "want-error.txt"
)

// Case is a golden case.
type Case struct {
	Name string
	// Shows is the purpose of the case, in a sentence.
	Shows string
	parts map[string]part
}

// part is a text of a case.
type part struct {
	// text is whole; it is empty until the difference was applied.
	text string
	// base is the name of a part of the same case, of a case, or empty for a part that is whole in the file.
	base string
	// difference replaces the whole text in the file.
	difference string
	// misfit is the reason why the difference cannot be applied; the text is then unknown.
	misfit error
}

// Text returns a part, whole, and whether the case has it and its difference fits.
func (c *Case) Text(name string) (string, bool) {
	p, ok := c.parts[name]
	return p.text, ok && p.misfit == nil
}

// Parts returns the names of the parts that begin with the prefix, in the order of the file.
func (c *Case) Parts(prefix string) []string {
	var names []string
	for name := range c.parts {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, byPlace)
	return names
}

// Set replaces a part by a whole text. Its base stays.
func (c *Case) Set(name, text string) {
	c.parts[name] = part{text: text, base: c.parts[name].base}
}

// Remove removes a part.
func (c *Case) Remove(name string) { delete(c.parts, name) }

// byPlace orders parts as a reader wants them: inputs, then upstream's answers, then ours.
func byPlace(a, b string) int {
	if d := place(a) - place(b); d != 0 {
		return d
	}
	return strings.Compare(answerNumber(a), answerNumber(b))
}

func place(name string) int {
	switch name {
	case TrainJob:
		return 0
	case Runtime:
		return 1
	case Options:
		return 2
	case Cluster:
		return 3
	}
	if strings.HasPrefix(name, "upstream") {
		return 4
	}
	return 5
}

// answerNumber makes upstream.yaml sort before upstream-2.yaml.
func answerNumber(name string) string {
	stem, _, _ := strings.Cut(name, ".")
	return stem
}

// mend returns the remedy for a part whose difference does not fit its base.
func mend(name string) string {
	switch {
	case strings.HasPrefix(name, "want"):
		return "run the test with -args -rewrite"
	case strings.HasPrefix(name, "upstream"):
		return "run make generate-conformance"
	}
	return "write the part whole"
}

// isInput reports whether people write a part.
func isInput(name string) bool { return place(name) < place(Upstream) }

// check refuses names of parts that no test reads.
func check(name string) error {
	switch name {
	case TrainJob, Runtime, Options, Cluster, Want, WantError:
		return nil
	}
	if strings.HasPrefix(name, "upstream") && (strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".txt")) {
		return nil
	}
	return fmt.Errorf(
		"part %q: want %s, %s, %s, %s, %s, %s or upstream*",
		name,
		TrainJob,
		Runtime,
		Options,
		Cluster,
		Want,
		WantError,
	)
}
