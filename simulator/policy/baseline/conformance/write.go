package conformance

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
)

// Write draws questions, asks Kueue and writes the file: equal bytes for equal seeds, counts and releases.
func Write(ctx context.Context, file string, seed uint64, trees int) (err error) {
	golden := Draw(seed, trees)
	golden.Kueue = release()
	if err = Answer(ctx, &golden); err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("creating the file: %w", err)
	}
	defer func() {
		if closing := out.Close(); err == nil && closing != nil {
			err = fmt.Errorf("closing the file: %w", closing)
		}
	}()
	packed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("packing: %w", err)
	}
	if err = json.NewEncoder(packed).Encode(golden); err != nil {
		return fmt.Errorf("writing the answers: %w", err)
	}
	if err = packed.Close(); err != nil {
		return fmt.Errorf("packing: %w", err)
	}
	return nil
}

// release is the version of Kueue in this binary.
func release() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "sigs.k8s.io/kueue" {
				return m.Version
			}
		}
	}
	return "unknown"
}
