// Command images writes Lockstep's images, and JobSet's, as OCI layouts, from binaries that are there:
// DIR/<os>_<arch>/<command>.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/manifests/image"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	_, _ = fmt.Fprintln(os.Stderr, "images:", err)
	if errors.Is(err, image.ErrUnknown) {
		os.Exit(2)
	}
	os.Exit(1)
}

// commands lists the commands that get an image.
func commands() []image.Command {
	return []image.Command{
		{
			Name: "lockstep-scheduler", Title: "Lockstep's scheduler",
			Description: "Places whole gangs of training pods: a secondary kube-scheduler.",
		},
		{
			Name: "lockstep-controller", Title: "Lockstep's controller",
			Description: "Turns TrainJobs into gangs and JobSets.",
		},
		{
			Name: "lockstep", Title: "Lockstep's command line",
			Description: "Explains, snapshots, simulates and migrates.",
		},
		// Its chart starts /manager.
		{
			Name: "jobset", Title: "JobSet's controller", Path: "/manager",
			Description: "JobSet, built of its Go module by Lockstep, for installations without a network.",
		},
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	binaries := flags.String("binaries", "", "folder with <os>_<arch>/<command>")
	dir := flags.String("dir", "", "folder for the layouts")
	platforms := flags.String("platforms", "linux_amd64,linux_arm64", "platforms, separated by commas")
	registry := flags.String(
		"registry",
		"",
		"what the images' names begin with in a container runtime, empty for nothing",
	)
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	var created time.Time
	for _, c := range commands() {
		var paths []string
		for platform := range strings.SplitSeq(*platforms, ",") {
			paths = append(paths, filepath.Join(*binaries, platform, c.Name))
		}
		of, err := image.SourceOf(paths[0])
		if err != nil {
			return err
		}
		if of.Created.IsZero() {
			of.Created = created
		}
		created = of.Created
		made, err := image.Make(c, of, paths)
		if err != nil {
			return err
		}
		if err := image.Write(*dir, *registry, of, made); err != nil {
			return err
		}
		if err := describe(out, made); err != nil {
			return err
		}
	}
	return nil
}

// describe prints a line for each platform: the image's digest and its size, compressed and on disk.
func describe(out io.Writer, made image.Made) error {
	for _, one := range made.Images {
		config, err := one.ConfigFile()
		if err != nil {
			return fmt.Errorf("reading an image's configuration: %w", err)
		}
		digest, err := one.Digest()
		if err != nil {
			return fmt.Errorf("summing an image up: %w", err)
		}
		size, err := image.Size(one)
		if err != nil {
			return err
		}
		unpacked, err := image.Unpacked(one)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%-20s %-12s %6.1f MB, unpacked %6.1f MB  %s\n",
			made.Command.Name, config.Platform(), float64(size)/1e6, float64(unpacked)/1e6, digest)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}
