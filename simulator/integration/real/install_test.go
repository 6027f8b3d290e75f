package real_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
)

// firstGang is the time that an installation may take when images are loaded: from the command to a gang that runs.
const firstGang = 90 * time.Second

// The first hours of an installation, by the commands of its user. The output is the transcript.
func TestInstall_FirstHours(t *testing.T) {
	doctor(t)
	began := time.Now()
	install(t, "helm", chartOf(t, "e2e"))
	submit(t, "first", "20s", 1)
	eventually(t, 2*time.Minute, "the first gang", func() bool { return runs(t, "first") })
	took := time.Since(began)
	t.Logf("the first gang runs %.0f s after helm was started", took.Seconds())
	if took > firstGang {
		t.Errorf("the first gang runs after %v, want at most %v", took, firstGang)
	}
	doctor(t)
	kubectl(t, "get", "pods", "-A", "-o", "wide")
	supportBundle(t)
	eventually(t, 2*time.Minute, "the end of the first gang", func() bool { return completed(t, "first") })
	kubectl(t, "logs", "-l", "jobset.sigs.k8s.io/jobset-name=first", "--prefix")

	submit(t, "running", "20m", 4)
	eventually(t, time.Minute, "a gang that runs on", func() bool { return runs(t, "running") })
	before := podsOf(t, "running", "")
	uninstall(t, "helm", namespace())
	undisturbed(t, "the removal", before)
	endOf(t, "running")
}

// supportBundle gathers a support bundle while a gang runs whose ranks have a secret in their environment, and looks
// for it, and for the private key of the webhooks.
func supportBundle(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "support.tar.gz")
	lockstep(t, "support-bundle", "--kubeconfig", shared.Kubeconfig(), "-o", file)
	key := kubectl(t, "get", "secret", "-n", namespace(), "lockstep-webhook-cert", "-o", `jsonpath={.data.tls\.key}`)
	plain, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(plain) == 0 {
		t.Fatalf("the private key of the webhooks is %q (%v)", plain, err)
	}
	parts := unpacked(t, file)
	logs := 0
	for name, content := range parts {
		t.Logf("%8d %s", len(content), name)
		for _, secret := range []string{userSecret, key, string(plain)} {
			if bytes.Contains(content, []byte(secret)) {
				t.Errorf("%s has %.20s...", name, secret)
			}
		}
		if strings.HasPrefix(name, "logs/"+namespace()+"/lockstep-") && len(content) > 0 {
			logs++
		}
	}
	if logs != 4 {
		t.Errorf("there are logs of %d pods, want those of both replicas of scheduler and controller", logs)
	}
	snapshot, err := capture.Read(bytes.NewReader(parts["snapshot.json.gz"]), file)
	if err != nil || len(snapshot.Nodes) != nodeCount || len(snapshot.PodGroups) == 0 {
		t.Errorf("the snapshot has %d nodes and %d gangs (%v)", len(snapshot.Nodes), len(snapshot.PodGroups), err)
	}
	t.Logf("README.txt of the bundle:\n%s\ndoctor.txt:\n%s", parts["README.txt"], parts["doctor.txt"])
}

// unpacked returns the files of an archive without its folder, and for a snapshot also its unpacked content.
func unpacked(t *testing.T, file string) map[string][]byte {
	t.Helper()
	packed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string][]byte{}
	for archive := tar.NewReader(bytes.NewReader(inflated(t, packed))); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		parts[name] = content
		if plain, packed := strings.CutSuffix(name, ".gz"); packed {
			parts[plain] = inflated(t, content)
		}
	}
}

func inflated(t *testing.T, packed []byte) []byte {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
