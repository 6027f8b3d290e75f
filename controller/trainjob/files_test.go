package trainjob_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// mpi is a runtime with nodes only.
func mpi() *trainerv1alpha1.ClusterTrainingRuntime {
	runtime := torch()
	runtime.Spec.MLPolicy.MLPolicySource = trainerv1alpha1.MLPolicySource{MPI: &trainerv1alpha1.MPIMLPolicySource{}}
	return runtime
}

func (w *world) secret() *corev1.Secret {
	w.t.Helper()
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: namespace, Name: "train-mpi-ssh-auth"}
	if err := w.Client.Get(w.t.Context(), key, &secret); err != nil {
		w.t.Fatal(err)
	}
	return &secret
}

// The keys open what they lock, are there before the pods, and stay when the job is suspended and goes on.
func TestKeysAreMadeOnce(t *testing.T) {
	w := newWorld(t, plan.Options{}, mpi(), trainJob(suspend(true)))
	w.settle()
	want := []string{ // the fixture does not tell of creations
		"apply ConfigMap train-runtime-snapshot",
		"apply ConfigMap train-mpi-hostfile",
		"apply JobSet",
		"patch TrainJob status",
	}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	secret := w.secret()
	if secret.Type != corev1.SecretTypeSSHAuth || secret.Immutable == nil || !*secret.Immutable ||
		metav1.GetControllerOf(secret) == nil {
		t.Errorf("the Secret is %v, immutable %v, of %v", secret.Type, secret.Immutable, secret.OwnerReferences)
	}
	signer, err := ssh.ParsePrivateKey(secret.Data["ssh-privatekey"])
	if err != nil {
		t.Fatal(err)
	}
	line := bytes.TrimSpace(secret.Data["ssh-publickey"])
	if got := bytes.TrimSpace(ssh.MarshalAuthorizedKey(signer.PublicKey())); !bytes.Equal(got, line) {
		t.Errorf("the keys are no pair: %s, %s", got, line)
	}
	w.change(suspend(false))
	w.settle()
	if !bytes.Equal(w.secret().Data["ssh-privatekey"], secret.Data["ssh-privatekey"]) {
		t.Error("the keys were made anew: pods that run could not be reached")
	}
}

func TestForeignKeysAreRefused(t *testing.T) {
	taken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train-mpi-ssh-auth"}}
	w := newWorld(t, plan.Options{}, mpi(), trainJob(), taken)
	if _, err := w.reconcile(); err == nil || w.jobSet() != nil {
		t.Errorf("a job with somebody else's keys: %v, JobSet %v", err, w.jobSet())
	}
}
