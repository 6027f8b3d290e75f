package capture

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/capture/anonymize"
	"github.com/lockstep-project/lockstep/simulator/inputs/redact"
)

// Options configure a snapshot.
type Options struct {
	// Taken is the instant that the manifest names.
	Taken time.Time
	// Anonymize gives everything that has a name of its own another one (see package anonymize).
	Anonymize bool
	// Redact removes commands, arguments and other possible secrets (see package redact). An anonymized snapshot has
	// none of them.
	Redact bool
	// Dir is the directory of the objects until all are there; "" is the directory for temporary files.
	Dir string
}

// Take lists a cluster and writes its snapshot to out, as lines of JSON that are not compressed. Memory grows with the
// names of the objects and one page of them, not with their size. A kind that may not be listed is bad input, and then
// nothing is written.
func Take(ctx context.Context, from Cluster, options Options, out io.Writer) (manifest Manifest, err error) {
	spool, err := newSpool(options.Dir)
	if err != nil {
		return Manifest{}, err
	}
	defer func() { err = errors.Join(err, spool.close()) }()
	manifest = Manifest{
		Format: Format, Taken: options.Taken.UTC().Truncate(time.Second), Server: from.Version,
		Anonymized: options.Anonymize,
	}
	for i, k := range kinds() {
		listed, err := from.list(ctx, i, k, spool)
		if err != nil {
			return Manifest{}, err
		}
		manifest.Kinds = append(manifest.Kinds, listed)
	}
	rewrite := func(_ kind, text []byte) ([]byte, error) { return text, nil }
	switch {
	case options.Anonymize:
		if rewrite, err = renaming(spool); err != nil {
			return Manifest{}, err
		}
	case options.Redact:
		rewrite = redacted
	}
	spool.sort()
	return manifest, write(manifest, spool, rewrite, out)
}

// Live is a cluster's snapshot in memory: Read applied to the output of Take, so that a live cluster and a file are one
// input.
func Live(ctx context.Context, from Cluster, options Options) (Snapshot, error) {
	in, out := io.Pipe()
	go func() {
		_, err := Take(ctx, from, options, out)
		_ = out.CloseWithError(err) // never fails; the reader gets err, or the end
	}()
	snapshot, err := Read(in, from.Server)
	_ = in.Close() // never fails; a writer that was not heard out ends
	return snapshot, err
}

// write writes the manifest and every object of the spool.
func write(
	manifest Manifest, spool *spool, rewrite func(kind, []byte) ([]byte, error), out io.Writer,
) error {
	buffered := bufio.NewWriterSize(out, 1<<16)
	lines := json.NewEncoder(buffered)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(manifest); err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	kinds := kinds()
	err := spool.each(func(e entry, text []byte) error {
		text, err := rewrite(kinds[e.kind], text)
		if err != nil {
			return err
		}
		return lines.Encode(line[json.RawMessage]{kinds[e.kind].resource.Resource, text})
	})
	if err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	return nil
}

// redacted is an object's text without possible secrets.
func redacted(k kind, text []byte) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("reading back a %s: %w", k.name, err)
	}
	redact.Object(object)
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("printing a %s: %w", k.name, err)
	}
	return text, nil
}

// renaming gives every name of the spool a pseudonym. It renames the entries, so that they are ordered as the objects
// will be, and returns the function that renames an object's text.
func renaming(spool *spool) (func(kind, []byte) ([]byte, error), error) {
	kinds, census := kinds(), anonymize.NewCensus()
	err := spool.each(func(e entry, text []byte) error {
		o := kinds[e.kind].blank()
		if err := json.Unmarshal(text, o); err != nil {
			return fmt.Errorf("reading back %s %s/%s: %w", kinds[e.kind].name, e.namespace, e.name, err)
		}
		census.Add(o)
		return nil
	})
	if err != nil {
		return nil, err
	}
	names := census.Names()
	for i, e := range spool.entries {
		spool.entries[i].namespace, spool.entries[i].name = names.Of(e.namespace), names.Of(e.name)
	}
	return func(k kind, text []byte) ([]byte, error) {
		o := k.blank()
		if err := json.Unmarshal(text, o); err != nil {
			return nil, fmt.Errorf("reading back a %s: %w", k.name, err)
		}
		names.Rename(o)
		text, err := json.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("printing a %s: %w", k.name, err)
		}
		return text, nil
	}, nil
}
