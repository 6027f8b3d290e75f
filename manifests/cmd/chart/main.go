// Command chart packs the Helm chart with the version of a binary's commit, and with the images of that commit the
// bundle for installations without a network.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/lockstep-project/lockstep/manifests/bundle"
	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/image"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	_, _ = fmt.Fprintln(os.Stderr, "chart:", err)
	if errors.Is(err, image.ErrUnknown) {
		os.Exit(2)
	}
	os.Exit(1)
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("chart", flag.ContinueOnError)
	binary := flags.String("binary", "", "a binary of the commit whose chart this is")
	jobset := flags.String("jobset", "", "folder with JobSet's chart")
	dir := flags.String("dir", "", "folder for what is written")
	layouts := flags.String("layouts", "", "folder with the layouts of the images: with it, the bundle is written too")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	of, err := image.SourceOf(*binary)
	if err != nil {
		return err
	}
	made, err := bundle.Chart(chart.Files, of, *jobset)
	if err != nil {
		return err
	}
	file, err := bundle.Save(made, *dir)
	if err != nil {
		return err
	}
	if err := describe(out, file); err != nil || *layouts == "" {
		return err
	}
	name := made.Name() + "-" + made.Metadata.Version
	archive := filepath.Join(*dir, name+"-offline.tar")
	to, err := os.Create(archive)
	if err != nil {
		return fmt.Errorf("creating the bundle: %w", err)
	}
	if err := errors.Join(bundle.Archive(to, name, file, *layouts, of.Created), to.Close()); err != nil {
		return err
	}
	return describe(out, archive)
}

// describe prints how large a file is.
func describe(out io.Writer, file string) error {
	info, err := os.Stat(file)
	if err == nil {
		_, err = fmt.Fprintf(out, "%s %.2f MB\n", file, float64(info.Size())/1e6)
	}
	if err != nil {
		return fmt.Errorf("describing %s: %w", file, err)
	}
	return nil
}
