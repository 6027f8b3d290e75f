package config_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lockstep-project/lockstep/controller/config"
)

const header = "apiVersion: config.trainer.kubeflow.org/v1alpha1\nkind: Configuration\n"

func parse(t *testing.T, content string, flags ...string) (config.Options, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trainer.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Parse(append([]string{"--config", path}, flags...), io.Discard)
}

// everything sets each field that Kubeflow Trainer 2.3 knows.
const everything = header + `
webhook: {port: 9444, host: 10.0.0.1}
leaderElection:
  leaderElect: true
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
  resourceLock: leases
  resourceName: trainer.kubeflow.org
  resourceNamespace: ""
metrics: {bindAddress: ":9443", secureServing: false}
health: {healthProbeBindAddress: ":8082", readinessEndpointName: readyz, livenessEndpointName: healthz}
controller:
  groupKindConcurrency:
    TrainJob.trainer.kubeflow.org: 7
    TrainingRuntime.trainer.kubeflow.org: 1
    ClusterTrainingRuntime.trainer.kubeflow.org: 1
certManagement: {enable: false, webhookServiceName: service, webhookSecretName: secret}
clientConnection: {qps: 50, burst: 100}
statusServer: {port: 10444, qps: 5, burst: 10}
tls: {minVersion: "1.3", cipherSuites: [], nextProtos: [http/1.1]}
featureGates: {TrainJobStatus: true}
`

func TestConfigFile_FlagsWin(t *testing.T) {
	want := config.Default()
	want.WebhookPort, want.WebhookHost, want.LeaderElect, want.Workers = 9444, "10.0.0.1", true, 7
	want.MetricsBindAddress, want.MetricsSecure, want.HealthProbeBindAddress = ":9443", false, ":8082"
	want.CertManagement, want.WebhookService, want.WebhookSecret = config.External, "service", "secret"
	want.QueriesPerSecond, want.Burst = 50, 100
	want.TrainJobStatus, want.StatusServerPort = true, 10444
	want.StatusServerQueriesPerSecond, want.StatusServerBurst = 5, 10
	want.Unused = []string{
		"controller.groupKindConcurrency.ClusterTrainingRuntime.trainer.kubeflow.org",
		"controller.groupKindConcurrency.TrainingRuntime.trainer.kubeflow.org",
		"health.livenessEndpointName", "health.readinessEndpointName",
		"leaderElection.leaseDuration", "leaderElection.renewDeadline", "leaderElection.resourceLock",
		"leaderElection.resourceName", "leaderElection.resourceNamespace", "leaderElection.retryPeriod",
		"tls.cipherSuites", "tls.minVersion", "tls.nextProtos",
	}
	got, err := parse(t, everything)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("without flags (-want +got):\n%s%v", diff, err)
	}

	// Also flags with the value that is the default without a file.
	want.WebhookPort, want.LeaderElect, want.Workers, want.CertManagement = 9443, false, 2, config.Self
	want.MetricsBindAddress, want.MetricsSecure, want.HealthProbeBindAddress, want.WebhookHost = ":8080", true, "0", ""
	want.TrainJobStatus, want.StatusServerPort = false, 10443
	got, err = parse(t, everything, "--webhook-port=9443", "--leader-elect=false", "--workers=2", "--webhook-host=",
		"--cert-management=self", "--metrics-bind-address=:8080", "--metrics-secure", "--health-probe-bind-address=0",
		"--feature-gates=TrainJobStatus=false", "--status-server-port=10443")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("with flags (-want +got):\n%s%v", diff, err)
	}
}

func TestConfigFile_EmptyChangesNothing(t *testing.T) {
	for _, content := range []string{header, header + "certManagement: {}\ncontroller:\n  groupKindConcurrency: {}\n"} {
		got, err := parse(t, content)
		if diff := cmp.Diff(config.Default(), got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%s(-want +got):\n%s%v", content, diff, err)
		}
	}
	if got, err := parse(t, header+"certManagement: {enable: true}"); err != nil || got.CertManagement != config.Self {
		t.Errorf("certManagement.enable: true is %s, %v", got.CertManagement, err)
	}
}

func TestConfigFile_MistakesAreOneLine(t *testing.T) {
	for content, want := range map[string]string{
		header + "webhok: {}":                      `unknown field "webhok"`,
		header + "webhook: {prot: 1}":              `unknown field "webhook.prot"`,
		header + "Webhook: {port: 1}":              `unknown field "Webhook"`,
		header + "webhook: {port: 0}":              "webhook.port is 0: must be between 1 and 65535",
		header + "webhook: {port: 65536}":          "webhook.port is 65536: must be between 1 and 65535",
		header + "webhook: {port: x}":              "webhook.port",
		header + "webhook: {port: 1}\nwebhook: {}": `"webhook"`,
		header + "clientConnection: {qps: -1}":     "clientConnection.qps is -1: must be greater than or equal to 0",
		header + "clientConnection: {burst: -1}":   "clientConnection.burst is -1: must be greater than or equal to 0",
		header + "controller: {groupKindConcurrency: {TrainJob.trainer.kubeflow.org: 0}}": "must be greater than 0",
		header + "controller: {groupKindConcurrency: {Other: 0}}":                         "must be greater than 0",
		header + "statusServer: {port: 0}":                                                "statusServer.port is 0: must be between 1 and 65535",
		header + "statusServer: {qps: -1}":                                                "statusServer.qps is -1: must be greater than or equal to 0",
		header + "statusServer: {burst: -1}":                                              "statusServer.burst is -1: must be greater than or equal to 0",
		header + "featureGates: {Other: true}":                                            "featureGates: Other is no feature gate",
		header + "featureGates: {TrainJobStatus: often}":                                  "featureGates",
		header + `certManagement: {webhookSecretName: ""}`:                                "SecretName must not be empty",
		header + `certManagement: {webhookServiceName: ""}`:                               "ServiceName must not be empty",
		"kind: Configuration":                                                             "apiVersion",
		strings.Replace(header, "alpha", "beta", 1):                                       `"config.trainer.kubeflow.org/v1beta1"`,
		"":         "apiVersion",
		"- a list": "config.trainer.kubeflow.org/v1alpha1",
		"a: [":     "YAML",
	} {
		_, err := parse(t, content)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") ||
			!strings.Contains(err.Error(), "trainer.yaml: ") {
			t.Errorf("%s\nerror %v, want one line that names the file and %s", content, err, want)
		}
	}
}

// TestConfigFile_DoesNotHideBadFlag checks that flags are validated although they are read after the file.
func TestConfigFile_DoesNotHideBadFlag(t *testing.T) {
	if _, err := parse(t, header, "--workers=0"); err == nil || !strings.Contains(err.Error(), "--workers=0") {
		t.Errorf("error %v", err)
	}
}
