package operators

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Build builds the operator into a folder of its module's release below dir, if it is not there, and returns the
// executable. Its module is downloaded with its own versions of everything, and verified as all modules are.
func (o Operator) Build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, strings.ReplaceAll(o.Module.String(), "/", "_"), path.Base(path.Join("main", o.Main)))
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	folder, err := o.Module.folder(ctx)
	if err != nil {
		return "", err
	}
	arguments := []string{"build", "-p", "2", "-o", binary}
	if len(o.Replacing) > 0 {
		temporary, err := os.MkdirTemp("", "lockstep-operators-")
		if err != nil {
			return "", fmt.Errorf("building %s: %w", o.Name, err)
		}
		defer func() { _ = os.RemoveAll(temporary) }()
		file, err := o.replace(folder, temporary)
		if err != nil {
			return "", err
		}
		arguments = append(arguments, "-mod=mod", "-modfile="+file)
	}
	build := exec.CommandContext(ctx, "go", append(arguments, o.Main)...)
	build.Dir, build.Env = folder, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s of %s: %w\n%s", o.Name, o.Module, err, said)
	}
	return binary, nil
}

// staged is a module that another one names as a folder of its own.
var staged = regexp.MustCompile(`(?m)^(\s*)(\S+) => \./\S+$`)

// replace writes go.mod and go.sum of the operator's module into a folder, with released modules for those that it
// names as folders. It returns go.mod.
func (o Operator) replace(folder, into string) (string, error) {
	content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("reading go.mod of %s: %w", o.Module, err)
	}
	text := staged.ReplaceAllStringFunc(string(content), func(line string) string {
		for _, module := range o.Replacing {
			if before, _, found := strings.Cut(line, " => "); found && strings.TrimSpace(before) == module.Path {
				return before + " => " + module.Path + " " + module.Version
			}
		}
		return line
	})
	sums, err := os.ReadFile(filepath.Join(folder, "go.sum"))
	if err != nil {
		return "", fmt.Errorf("reading go.sum of %s: %w", o.Module, err)
	}
	file := filepath.Join(into, "go.mod")
	if err := errors.Join(
		os.WriteFile(file, []byte(text), 0o600), os.WriteFile(filepath.Join(into, "go.sum"), sums, 0o600),
	); err != nil {
		return "", fmt.Errorf("writing go.mod of %s: %w", o.Module, err)
	}
	return file, nil
}

// folder downloads the module, if it is not there, and returns its folder, which must not be written to.
func (m Module) folder(ctx context.Context) (string, error) {
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.String())
	download.Dir = os.TempDir() // outside of any module, whose requirements would count
	content, err := download.Output()
	var answer struct{ Dir, Error string }
	if decoding := json.Unmarshal(content, &answer); decoding != nil {
		return "", fmt.Errorf("downloading %s: %w", m, errors.Join(err, decoding))
	}
	if err != nil || answer.Dir == "" {
		return "", fmt.Errorf("downloading %s: %w %s", m, err, answer.Error)
	}
	return answer.Dir, nil
}
