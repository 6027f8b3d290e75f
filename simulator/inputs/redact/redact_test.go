package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/simulator/inputs/redact"
)

// secret stands for users' private text in every field that may hold it, and has no form that Text detects.
const secret = "plainly-mine"

// job has it in a TrainJob and in the pods of one, in each field that may hold a credential.
const job = `
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: job
  annotations:
    example.com/login: plainly-mine
    lockstep.dev/topology-required: clique
    kubectl.kubernetes.io/last-applied-configuration: plainly-mine
  managedFields: [{manager: plainly-mine}]
spec:
  trainer:
    command: [train, --key, plainly-mine]
    env:
    - {name: KEY, value: plainly-mine}
    - {name: OTHER, valueFrom: {secretKeyRef: {name: credentials, key: k}}}
  runtimePatches:
  - trainingRuntimeSpec:
      template:
        spec:
          replicatedJobs:
          - template:
              metadata: {annotations: {login: plainly-mine}}
              spec:
                template:
                  spec:
                    containers:
                    - name: node
                      args: [plainly-mine]
                      env: [{name: KEY, value: plainly-mine}]
                      livenessProbe: {httpGet: {httpHeaders: [{name: X-Key, value: plainly-mine}]}}
                      lifecycle: {preStop: {exec: {command: [plainly-mine]}}}
                    volumes:
                    - {csi: {driver: example.com, volumeAttributes: {key: plainly-mine}}}
                    - {flexVolume: {driver: example.com/x, options: {key: plainly-mine}}}
`

func TestObject_RemovesWhatMayBeSecret(t *testing.T) {
	var object map[string]any
	if err := yaml.Unmarshal([]byte(job), &object); err != nil {
		t.Fatal(err)
	}
	redact.Object(object)
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), secret) {
		t.Errorf("it still has the secret:\n%s", text)
	}
	for _, kept := range []string{
		`"secretKeyRef":{"key":"k","name":"credentials"}`, `"lockstep.dev/topology-required":"clique"`, `"name":"KEY"`,
		`"command":["(removed)","(removed)","(removed)"]`, `"example.com/login":"(removed)"`,
	} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("it has no %s:\n%s", kept, text)
		}
	}
}

// Names stay, even one that looks like the beginning of a token, and selectors, which have the form of NAME=VALUE.
func TestTexts_KeepsNames(t *testing.T) {
	object := map[string]any{
		"name": "sk-learn-on-a-hundred-nodes",
		"list": []any{"app=web", "hf_0123456789abcdefABCDEF"},
	}
	redact.Texts(object)
	text, err := json.Marshal(object)
	if want := `{"list":["app=web","(removed)"],"name":"sk-learn-on-a-hundred-nodes"}`; err != nil ||
		string(text) != want {
		t.Errorf("%s (%v), want %s", text, err, want)
	}
}

func TestText(t *testing.T) {
	const token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl"
	for _, c := range []struct{ text, want string }{
		{"token " + token + " expired", "token (removed) expired"},
		{"Authorization: Bearer abcdef0123456789", "Authorization: Bearer (removed)"},
		{"pulling https://me:pw@example.com/x failed", "pulling https://(removed)@example.com/x failed"},
		{"GET https://example.com/a?X-Amz-Signature=abc&x=1 403", "GET https://example.com/a?(removed) 403"},
		{"using hf_0123456789abcdefABCDEF", "using (removed)"},
		{"key AKIA0123456789ABCDEF is wrong", "key (removed) is wrong"},
		{`{"password":"a b","x":1}`, `{"password":"(removed)","x":1}`},
		{"api_key=abc, x=1", "api_key=(removed), x=1"},
		{"train --hf-token abc --epochs 3", "train --hf-token (removed) --epochs 3"},
		{"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nx", "(removed)\nx"},
		{"-----BEGIN PRIVATE KEY-----\nabc", "(removed)"},
		// Nothing of these is a secret.
		{`needs 2 members; the cluster holds 0 of 2; 70 nodes barred`, ``},
		{`error="context deadline exceeded" podGroup="default/sk-learn"`, ``},
		{`https://10.0.0.1:443/api/v1/pods?limit=500&resourceVersion=0`, ``},
		{`secret "jobset-webhook-server-cert" not found`, ``},
	} {
		if c.want == "" {
			c.want = c.text
		}
		if got := redact.Text(c.text); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.text, got, c.want)
		}
	}
}
