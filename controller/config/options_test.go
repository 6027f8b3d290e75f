package config_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-project/lockstep/controller/config"
)

func TestParse(t *testing.T) {
	got, err := config.Parse(
		strings.Fields("--kubeconfig=k --namespace n --leader-elect --metrics-bind-address=0 --metrics-secure=false "+
			"--health-probe-bind-address=:1 --gang-default=on --workers=9 -v 4 --webhook-host=h --webhook-port=2 "+
			"--webhook-cert-dir=d --cert-management=external --feature-gates=TrainJobStatus=true --status-server-port=3 "+
			"--status-server-url=https://h:3 --guard-patience=5s --namespaces=a,b --manage=all --node-shape=cpu=96,nvidia.com/gpu=8 --nodes-complete"),
		io.Discard,
	)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Options{
		Kubeconfig:             "k",
		Namespace:              "n",
		Namespaces:             []string{"a", "b"},
		LeaderElect:            true,
		MetricsBindAddress:     "0",
		HealthProbeBindAddress: ":1",
		Manage:                 "all",
		NodeShapes: []corev1.ResourceList{
			{"cpu": resource.MustParse("96"), "nvidia.com/gpu": resource.MustParse("8")},
		},
		NodesComplete:                true,
		GangDefault:                  "on",
		Workers:                      9,
		Verbosity:                    4,
		GuardPatience:                5 * time.Second,
		WebhookHost:                  "h",
		WebhookPort:                  2,
		WebhookCertDir:               "d",
		CertManagement:               config.External,
		WebhookService:               "lockstep-controller-webhook",
		WebhookSecret:                "lockstep-webhook-cert",
		QueriesPerSecond:             200,
		Burst:                        400,
		TrainJobStatus:               true,
		StatusServerPort:             3,
		StatusServerURL:              "https://h:3",
		StatusServerQueriesPerSecond: 500,
		StatusServerBurst:            1000,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	got, err = config.Parse([]string{"--leader-elect", "--take-over=kubeflow-system"}, io.Discard)
	if err != nil || got.TakeOver != "kubeflow-system" {
		t.Errorf("it takes over %q (%v)", got.TakeOver, err)
	}
	got, err = config.Parse(nil, io.Discard)
	if diff := cmp.Diff(config.Default(), got); diff != "" || err != nil {
		t.Errorf("options without flags (-want +got):\n%s%v", diff, err)
	}
}

// TestParse_BadFlagsAreOneLine checks the form of errors on the command line.
func TestParse_BadFlagsAreOneLine(t *testing.T) {
	for line, want := range map[string]string{
		"--gang-default=yes":     "gang-default",
		"--workers=0":            "workers",
		"--guard-patience=-1s":   "guard-patience",
		"--workers=many":         "workers",
		"--v=-1":                 "--v",
		"--namespace=":           "namespace",
		"--namespaces=a,,b":      `namespaces: ""`,
		"--namespaces=a,B":       `namespaces: "B"`,
		"--namespaces=a,a":       "a is there twice",
		"--webhook-port=-1":      "webhook-port",
		"--webhook-port=65536":   "webhook-port",
		"--cert-management=both": "cert-management",
		"--config=none.yaml":     "none.yaml",
		"--cert-management=external --webhook-cert-dir=":                      "webhook-cert-dir",
		"--feature-gates=TrainJobStatus":                                      "feature-gates",
		"--feature-gates=TrainJobStatus=true,Other=false":                     "Other is no feature gate",
		"--feature-gates=":                                                    "feature-gates",
		"--feature-gates=TrainJobStatus=true --status-server-port=0":          "status-server-port",
		"--feature-gates=TrainJobStatus=true --status-server-port=65536":      "status-server-port",
		"--feature-gates=TrainJobStatus=true --webhook-port=0":                "webhook-port=0",
		"--feature-gates=TrainJobStatus=true --status-server-url=http://a:1":  "status-server-url",
		"--feature-gates=TrainJobStatus=true --status-server-url=https://a/b": "status-server-url",
		"--feature-gates=TrainJobStatus=true --status-server-url=https://u@a": "status-server-url",
		"--node-shape=cpu":            "must be resources as in",
		"--node-shape=cpu=many":       "cpu=many: must be resources as in",
		"--manage=some":               "--manage=some: must be all or chosen",
		"--take-over=kubeflow-system": "--take-over=kubeflow-system: needs --leader-elect",
		"--take-over=kubeflow-system --leader-elect --manage=chosen": "must not be with --manage=chosen",
		"--take-over=kubeflow-system --leader-elect --namespaces=a":  "no controller would handle the TrainJobs of other namespaces",
		"--bogus": "bogus",
		"now":     "now",
	} {
		var out strings.Builder
		_, err := config.Parse(strings.Fields(line), &out)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || out.Len() > 0 {
			t.Errorf("%s: error %v and output %q, want one line that names %s", line, err, out.String(), want)
		}
	}
	var out strings.Builder
	if _, err := config.Parse([]string{"--help"}, &out); !errors.Is(err, config.ErrHelp) ||
		!strings.Contains(out.String(), "--gang-default") {
		t.Errorf("--help: error %v and output %q", err, out.String())
	}
	if _, err := config.Parse([]string{"--version"}, &out); !errors.Is(err, config.ErrVersion) {
		t.Errorf("--version: error %v", err)
	}
}
