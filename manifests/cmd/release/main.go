// Command release collects a tag's artifacts in one folder: for each platform an archive of the programs, their bills
// of materials, the chart, the archive for installations without a network, the notes, and sums of all.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockstep-project/lockstep/manifests/bundle"
	"github.com/lockstep-project/lockstep/manifests/image"
)

// inputError indicates input that the caller must mend.
type inputError struct{ error }

func main() {
	err := run(os.Args[1:], os.Stdout)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	_, _ = fmt.Fprintln(os.Stderr, "release:", err)
	if wrong := (inputError{}); errors.As(err, &wrong) || errors.Is(err, image.ErrUnknown) {
		os.Exit(2)
	}
	os.Exit(1)
}

// release holds what to collect, and the folders that have it.
type release struct {
	tag, binaries, charts, changelog, dir string
	platforms                             []string
}

// programs returns the names of the programs that are released.
func programs() []string { return []string{"lockstep", "lockstep-scheduler", "lockstep-controller"} }

func run(args []string, out io.Writer) error {
	var r release
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.tag, "tag", "", "the tag, which is the version of the binaries")
	flags.StringVar(&r.binaries, "binaries", "", "folder with <os>_<arch>/<program>")
	flags.StringVar(
		&r.charts,
		"charts",
		"",
		"folder with the packed chart and the archive for installations without a network",
	)
	flags.StringVar(&r.changelog, "changelog", "CHANGELOG.md", "file with a section of the tag")
	flags.StringVar(&r.dir, "dir", "", "folder for what is written; it is emptied")
	platforms := flags.String("platforms", "linux_amd64,linux_arm64", "platforms, separated by commas")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	r.platforms = strings.Split(*platforms, ",")
	notes, err := r.notes()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(r.dir); err != nil {
		return fmt.Errorf("emptying the folder: %w", err)
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return fmt.Errorf("making the folder: %w", err)
	}
	for _, platform := range r.platforms {
		if err := r.platform(platform); err != nil {
			return err
		}
	}
	if err := r.copyCharts(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.dir, "NOTES.md"), []byte(notes), 0o644); err != nil {
		return fmt.Errorf("writing the notes: %w", err)
	}
	if err := bundle.Sum(r.dir); err != nil {
		return err
	}
	return describe(out, r.dir)
}

// notes returns the section of the changelog, once it is sure that the binaries are of the tag.
func (r release) notes() (string, error) {
	for _, platform := range r.platforms {
		for _, program := range programs() {
			binary := filepath.Join(r.binaries, platform, program)
			of, err := image.SourceOf(binary)
			if err != nil {
				return "", err
			}
			if of.Version != r.tag {
				return "", inputError{
					fmt.Errorf(
						"%s is of version %s, not of tag %s: commit, tag and build it again",
						binary,
						of.Version,
						r.tag,
					),
				}
			}
		}
	}
	text, err := os.ReadFile(r.changelog)
	if err != nil {
		return "", fmt.Errorf("reading the changelog: %w", err)
	}
	notes, err := bundle.Notes(string(text), r.tag)
	if err != nil {
		return "", inputError{fmt.Errorf("%s: %w", r.changelog, err)}
	}
	return notes, nil
}

// platform writes the archive of a platform, and the bills of materials of its programs.
func (r release) platform(platform string) error {
	name := "lockstep-" + r.tag + "-" + strings.ReplaceAll(platform, "_", "-")
	files := []string{"LICENSE"}
	var of image.Source
	for _, program := range programs() {
		binary := filepath.Join(r.binaries, platform, program)
		source, err := image.SourceOf(binary)
		if err != nil {
			return err
		}
		of = source
		materials, err := image.SBOM(image.Command{Name: program}, source, binary)
		if err != nil {
			return err
		}
		file := filepath.Join(r.dir, program+"-"+r.tag+"-"+strings.ReplaceAll(platform, "_", "-")+".cdx.json")
		if err := os.WriteFile(file, materials, 0o644); err != nil {
			return fmt.Errorf("writing a bill of materials: %w", err)
		}
		files = append(files, binary)
	}
	to, err := os.Create(filepath.Join(r.dir, name+".tar.gz"))
	if err != nil {
		return fmt.Errorf("creating an archive: %w", err)
	}
	return errors.Join(bundle.Programs(to, name, files, of.Created), to.Close())
}

// copyCharts copies the packed chart of the tag, and its archive for installations without a network.
func (r release) copyCharts() error {
	version := strings.TrimPrefix(r.tag, "v")
	for _, name := range []string{"lockstep-" + version + ".tgz", "lockstep-" + version + "-offline.tar"} {
		from, err := os.Open(filepath.Join(r.charts, name))
		if err != nil {
			return fmt.Errorf("copying the chart: %w", err)
		}
		to, err := os.Create(filepath.Join(r.dir, name))
		if err != nil {
			return errors.Join(fmt.Errorf("copying the chart: %w", err), from.Close())
		}
		_, err = io.Copy(to, from)
		if err = errors.Join(err, from.Close(), to.Close()); err != nil {
			return fmt.Errorf("copying %s: %w", name, err)
		}
	}
	return nil
}

// describe prints the size of each file.
func describe(out io.Writer, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("listing the release: %w", err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return fmt.Errorf("describing %s: %w", entry.Name(), err)
		}
		if _, err := fmt.Fprintf(out, "%8.2f MB  %s\n", float64(info.Size())/1e6, entry.Name()); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}
