package trainjob_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/trainjob"
)

// mpi is a runtime with nodes only.
func mpi() *trainerv1alpha1.ClusterTrainingRuntime {
	runtime := torch()
	runtime.Spec.MLPolicy.MLPolicySource = trainerv1alpha1.MLPolicySource{MPI: &trainerv1alpha1.MPIMLPolicySource{}}
	return runtime
}

// flux is a runtime with one broker in each node.
func flux() *trainerv1alpha1.ClusterTrainingRuntime {
	runtime := torch()
	runtime.Spec.MLPolicy.MLPolicySource = trainerv1alpha1.MLPolicySource{Flux: &trainerv1alpha1.FluxMLPolicySource{}}
	return runtime
}

func (w *world) secret(name string) *corev1.Secret {
	w.t.Helper()
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if err := w.Client.Get(w.t.Context(), key, &secret); err != nil {
		w.t.Fatal(err)
	}
	return &secret
}

// The Secrets are there before the pods, belong to the job, and stay when it is suspended and goes on.
func TestSecretsAreMadeOnce(t *testing.T) {
	for name, test := range map[string]struct {
		runtime *trainerv1alpha1.ClusterTrainingRuntime
		config  string
		kind    corev1.SecretType
		check   func(*testing.T, map[string][]byte)
	}{
		"train-mpi-ssh-auth": {runtime: mpi(), config: "train-mpi-hostfile", kind: corev1.SecretTypeSSHAuth, check: checkSSHKeys},
		"train-flux-curve":   {runtime: flux(), config: "train-flux-entrypoint", kind: corev1.SecretTypeOpaque, check: checkCertificate},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, plan.Options{}, test.runtime, trainJob(suspend(true)))
			w.settle()
			want := []string{
				"create FrozenTrainJob", "create ConfigMap train-runtime-snapshot",
				"apply ConfigMap " + test.config,
				"create Secret " + name,
				"apply JobSet",
				"patch TrainJob status",
			}
			if diff := cmp.Diff(want, w.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			secret := w.secret(name)
			if secret.Type != test.kind || secret.Immutable == nil || !*secret.Immutable ||
				!ownership.Controls(w.job(), plan.TrainJobKind(), secret) {
				t.Errorf("the Secret is %v, immutable %v, of %v", secret.Type, secret.Immutable, secret.OwnerReferences)
			}
			test.check(t, secret.Data)
			w.change(suspend(false))
			w.settle()
			if diff := cmp.Diff(secret.Data, w.secret(name).Data); diff != "" {
				t.Error("the keys were made anew: pods that run could not be reached")
			}
		})
	}
}

// checkSSHKeys wants keys that open what they lock.
func checkSSHKeys(t *testing.T, data map[string][]byte) {
	t.Helper()
	signer, err := ssh.ParsePrivateKey(data["ssh-privatekey"])
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.TrimSpace(data["ssh-publickey"])
	if got := bytes.TrimSpace(ssh.MarshalAuthorizedKey(signer.PublicKey())); !bytes.Equal(got, line) {
		t.Errorf("the keys are no pair: %s, %s", got, line)
	}
}

// checkCertificate wants one file with the job's name. Package curve's test reads the keys.
func checkCertificate(t *testing.T, data map[string][]byte) {
	t.Helper()
	if text := string(data["curve.cert"]); len(data) != 1 || !strings.Contains(text, "    name = \"train\"\n") {
		t.Errorf("the Secret has %d files, curve.cert is\n%s", len(data), text)
	}
}

// Two jobs of one name, one after the other, share nothing: upstream's key follows from what everybody can read.
func TestCertificatesDiffer(t *testing.T) {
	var texts []string
	for range 2 {
		w := newWorld(t, plan.Options{}, flux(), trainJob())
		w.settle()
		texts = append(texts, string(w.secret("train-flux-curve").Data["curve.cert"]))
	}
	if texts[0] == texts[1] {
		t.Errorf("twice the same certificate:\n%s", texts[0])
	}
}

func TestForeignSecretsAreRefused(t *testing.T) {
	for name, runtime := range map[string]*trainerv1alpha1.ClusterTrainingRuntime{
		"train-mpi-ssh-auth": mpi(), "train-flux-curve": flux(),
	} {
		t.Run(name, func(t *testing.T) {
			taken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			w := newWorld(t, plan.Options{}, runtime, trainJob(), taken)
			if _, err := w.reconcile(); !errors.Is(err, trainjob.ErrForeign) || w.jobSet() != nil {
				t.Errorf("a job with somebody else's Secret: %v, JobSet %v", err, w.jobSet())
			}
		})
	}
}
