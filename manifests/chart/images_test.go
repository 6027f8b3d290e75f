package chart_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/manifests/chart"
)

// named finds the image in a line: a field image, or the value of a variable whose text looks like one.
var named = regexp.MustCompile(
	`(?m)^\s*-?\s*(?:image|value): *"?([a-z0-9.-]+(?:/[a-z0-9._-]+)+[^\s"]*|[a-z0-9.-]+:[a-z0-9._-]+)"?(?:\s|$)`,
)

// An image without a tag is pulled at each start of a pod (imagePullPolicy Always), and is another one next week. A
// site without a network cannot name it in a mirror.
func TestRuntimes_ImagesHaveATag(t *testing.T) {
	eachManifest(t, chart.Files, "runtimes", pinned)
	for _, folder := range []string{"samples", "samples-devices", "samples-kueue"} {
		eachManifest(t, os.DirFS(".."), folder, pinned)
	}
}

// eachManifest calls back for the text of each file of a folder.
func eachManifest(t *testing.T, files fs.FS, folder string, check func(t *testing.T, file, text string)) {
	t.Helper()
	entries, err := fs.ReadDir(files, folder)
	if err != nil || len(entries) == 0 {
		t.Fatalf("%s: %d files, %v", folder, len(entries), err)
	}
	for _, entry := range entries {
		file := path.Join(folder, entry.Name())
		text, err := fs.ReadFile(files, file)
		if err != nil {
			t.Fatal(err)
		}
		check(t, file, string(text))
	}
}

// pinned fails the test for each image with no tag or digest, or with the tag latest.
func pinned(t *testing.T, file, text string) {
	t.Helper()
	for _, found := range named.FindAllStringSubmatch(text, -1) {
		if strings.Contains(found[1], "://") {
			continue // a value that is an address
		}
		_, tag, tagged := strings.Cut(path.Base(found[1]), ":")
		if !tagged || tag == "latest" {
			t.Errorf("%s: image %s has no tag of its own", file, found[1])
		}
	}
	if strings.HasPrefix(file, "runtimes/") && strings.Count(text, "image:") > len(named.FindAllString(text, -1)) {
		t.Errorf("%s: a line with an image is not understood", file)
	}
}
