package support

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/live/doctor"
)

// Cluster is the source of a bundle.
type Cluster struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Snapshots lists the objects that a scheduler sees of the same cluster.
	Snapshots capture.Cluster
}

// Options select the contents of a bundle.
type Options struct {
	// Namespace is Lockstep's; empty for those in which its Deployments are found.
	Namespace string
	// Taken is the instant that the bundle names, Version the release of the command that gathers it.
	Taken   time.Time
	Version string
	// Dir is for files that are needed in between; empty for the directory for temporary files.
	Dir string
}

// Part is a file of a bundle.
type Part struct {
	Name    string
	Content []byte
}

// Bundle holds the gathered files, in the order of the archive.
type Bundle struct {
	Parts []Part
	// Missing lists the unreadable parts, a line each: parts of a bundle do not depend on one another.
	Missing []string
}

// Gather reads a cluster. It fails if the API server cannot be used at all, or if the context has ended.
func Gather(ctx context.Context, from Cluster, options Options) (Bundle, error) {
	var bundle Bundle
	facts, findings, err := doctor.Examine(ctx, from.Client, from.Dynamic)
	if err != nil {
		bundle.miss("the doctor's findings", err)
	} else if err := bundle.findings(findings); err != nil {
		return Bundle{}, err
	}
	if err := bundle.snapshot(ctx, from.Snapshots, options); err != nil {
		bundle.miss("the snapshot", err)
	}
	namespaces := namespacesOf(facts, options.Namespace)
	if len(namespaces) == 0 {
		bundle.miss("the installation", errNotInstalled)
	}
	for _, kind := range kinds() {
		bundle.objects(ctx, from.Dynamic, kind, namespaces)
	}
	for _, namespace := range namespaces {
		bundle.logs(ctx, from.Client, namespace)
	}
	if ctx.Err() != nil {
		return Bundle{}, fmt.Errorf("gathering a bundle: %w", ctx.Err())
	}
	slices.SortFunc(bundle.Parts, func(a, b Part) int { return strings.Compare(a.Name, b.Name) })
	bundle.Parts = append(
		[]Part{{"README.txt", []byte(bundle.describe(options, from.Snapshots.Version))}},
		bundle.Parts...)
	return bundle, nil
}

// errNotInstalled indicates that there is no Deployment of Lockstep's.
var errNotInstalled = errors.New("no Deployment of Lockstep's is found")

// namespacesOf returns where Lockstep is installed.
func namespacesOf(facts doctor.Facts, named string) []string {
	if named != "" {
		return []string{named}
	}
	var found []string
	for _, deployment := range facts.Lockstep.Deployments {
		found = append(found, deployment.Namespace)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func (b *Bundle) add(name string, content []byte) {
	b.Parts = append(b.Parts, Part{name, content})
}

// miss notes that something could not be read.
func (b *Bundle) miss(what string, err error) {
	b.Missing = append(b.Missing, what+": "+err.Error())
}

// findings adds the doctor's findings.
func (b *Bundle) findings(findings []doctor.Finding) error {
	var text bytes.Buffer
	if err := doctor.Write(&text, findings); err != nil {
		return err
	}
	b.add("doctor.txt", text.Bytes())
	encoded, err := json.MarshalIndent(findings, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the doctor's findings: %w", err)
	}
	b.add("doctor.json", append(encoded, '\n'))
	return nil
}

// snapshot adds a snapshot of the scheduler's objects.
func (b *Bundle) snapshot(ctx context.Context, from capture.Cluster, options Options) error {
	var text bytes.Buffer
	packed := gzip.NewWriter(&text)
	taking := capture.Options{Taken: options.Taken, Redact: true, Dir: options.Dir}
	if _, err := capture.Take(ctx, from, taking, packed); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return fmt.Errorf("compressing the snapshot: %w", err)
	}
	b.add("snapshot.json.gz", text.Bytes())
	return nil
}

// describe returns the text that opens the bundle.
func (b *Bundle) describe(options Options, server string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "Support bundle of Lockstep, taken %s by lockstep %s of a cluster of Kubernetes %s.\n\n",
		options.Taken.UTC().Format(time.RFC3339), options.Version, server)
	text.WriteString("doctor.txt        what is there, and what is wrong\n" +
		"snapshot.json.gz  what a scheduler sees: lockstep explain trainjob NAME --snapshot snapshot.json.gz\n" +
		"objects           the installation, JobSets, Events; of a kind the first " + strconv.Itoa(most) + " objects\n" +
		"logs              of Lockstep's pods, and of JobSet's in the same namespace, the last " + strconv.Itoa(logLines) + " lines of each\n\n" +
		"Secrets were not read. Removed: values of environment variables, commands and arguments of jobs, annotations of unknown\n" +
		"domains, and what has the form of a credential. Names of namespaces, jobs, nodes and images are there: read it before\n" +
		"you hand it on.\n")
	if len(b.Missing) > 0 {
		text.WriteString("\nWhat could not be read:\n")
		for _, line := range b.Missing {
			text.WriteString("  " + line + "\n")
		}
	}
	return text.String()
}
