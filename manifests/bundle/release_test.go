package bundle_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/manifests/bundle"
)

func TestNotes(t *testing.T) {
	const changelog = "# Changelog\n\nWords.\n\n## Unreleased\n\n* later\n\n## v1.2.0 (2026-12-01)\n\n### Added\n\n* this\n\n## v1.1.0\n\n* that\n\n## v1.0.0\n"
	for _, test := range []struct{ tag, want, fault string }{
		{"v1.2.0", "### Added\n\n* this\n", ""},
		{"v1.1.0", "* that\n", ""},
		{"v1.0.0", "", `no section "## v1.0.0"; give what is below "## Unreleased" that heading`},
		{"v1.3.0", "", `no section "## v1.3.0"`},
	} {
		notes, err := bundle.Notes(changelog, test.tag)
		if test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)) {
			t.Errorf("%s: error %v, want %q", test.tag, err, test.fault)
		}
		if notes != test.want {
			t.Errorf("%s: notes %q, want %q", test.tag, notes, test.want)
		}
	}
}

// An archive of programs has them below one folder, executable, and the same bits each time. The sums are those of
// sha256sum.
func TestPrograms_AreTheSameEachTime(t *testing.T) {
	dir, at := t.TempDir(), time.Unix(1700000000, 0).UTC()
	program := filepath.Join(dir, "lockstep")
	license := filepath.Join(dir, "LICENSE")
	if err := errors.Join(
		os.WriteFile(program, []byte("a program"), 0o700),
		os.WriteFile(license, []byte("a license"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	err := errors.Join(
		bundle.Programs(
			&first,
			"lockstep-v1",
			[]string{program, license},
			at,
		),
		bundle.Programs(&second, "lockstep-v1", []string{program, license}, at),
	)
	if err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Fatalf("two archives differ (%v)", err)
	}
	released := t.TempDir()
	if err := os.WriteFile(filepath.Join(released, "lockstep.tar.gz"), first.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	content, err := gzip.NewReader(&first)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(content)
	header, err := archive.Next()
	if err != nil || header.Name != "lockstep-v1/lockstep" || header.Mode != 0o755 || !header.ModTime.Equal(at) {
		t.Errorf("the archive begins with %+v (%v)", header, err)
	}
	if text, err := io.ReadAll(archive); err != nil || string(text) != "a program" {
		t.Errorf("the program is %q (%v)", text, err)
	}
	if header, err = archive.Next(); err != nil || header.Name != "lockstep-v1/LICENSE" || header.Mode != 0o644 {
		t.Errorf("the archive goes on with %+v (%v)", header, err)
	}
	for range 2 { // the sums of before are not summed up
		if err := bundle.Sum(released); err != nil {
			t.Fatal(err)
		}
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "-c", "SHA256SUMS")
	check.Dir = released
	if out, err := check.CombinedOutput(); err != nil || string(out) != "lockstep.tar.gz: OK\n" {
		t.Errorf("sha256sum says %s (%v)", out, err)
	}
}

func TestPrograms_MissingFile(t *testing.T) {
	var out bytes.Buffer
	if err := bundle.Programs(&out, "lockstep-v1", []string{"testdata/nowhere"}, time.Time{}); err == nil {
		t.Error("an archive without its program is made")
	}
}
