package moving_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// uninstall stops Lockstep for good. Its finalizers on PodGroups block the deletion of the namespace, until the command
// of docs/kubernetes.md has run. It needs kubectl, which make test-full builds.
func (s scene) uninstall() {
	s.t.Helper()
	root, err := filepath.Abs("../../..")
	s.must(err)
	if _, err := os.Stat(filepath.Join(root, "bin", "kubectl")); errors.Is(err, fs.ErrNotExist) {
		s.say("without bin/kubectl the command of docs/kubernetes.md is left out")
		return
	}
	s.must(shared.StopRelease(s.t.Context()))
	if left := s.groups(gangapi.Resources); len(left) == 0 {
		s.t.Fatal("there are no groups")
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "kubernetes.md"))
	s.must(err)
	script := regexp.MustCompile("(?s)<!-- make test-full: remove -->\n```sh\n(.*?)```\n").FindSubmatch(page)
	if script == nil {
		s.t.Fatal("docs/kubernetes.md has no command that removes finalizers")
	}
	command := exec.CommandContext(s.t.Context(), "bash", "-c", "set -o pipefail; "+string(script[1]))
	command.Env = append(
		os.Environ(),
		"PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"),
		"KUBECONFIG="+shared.Kubeconfig(),
	)
	out, err := command.CombinedOutput()
	s.say("$ %s\n%s", script[1], out)
	s.must(err)
	s.must(shared.Client.CoreV1().Namespaces().Delete(s.t.Context(), team, metav1.DeleteOptions{}))
	s.eventually("the namespace is gone", func() string {
		namespace, err := shared.Client.CoreV1().Namespaces().Get(s.t.Context(), team, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		s.must(err)
		for _, condition := range namespace.Status.Conditions {
			if condition.Status == "True" {
				return condition.Message
			}
		}
		return string(namespace.Status.Phase)
	})
}
