package trainjob_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// secrets are the Secrets that there are.
func (w *fixture) secrets() []corev1.Secret {
	w.t.Helper()
	var list corev1.SecretList
	if err := w.Client.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// secret is the only Secret.
func (w *fixture) secret() *corev1.Secret {
	w.t.Helper()
	secrets := w.secrets()
	if len(secrets) != 1 {
		w.t.Fatalf("%d Secrets, want 1", len(secrets))
	}
	return &secrets[0]
}

// mounted is the name of the Secret that the job's pods mount.
func (w *fixture) mounted() string {
	w.t.Helper()
	for _, volume := range w.jobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Volumes {
		if volume.Secret != nil {
			return volume.Secret.SecretName
		}
	}
	return ""
}

// The Secrets exist before the JobSet that names them, also of a suspended job, belong to the job, and stay when it is
// suspended and resumed. Their names cannot be guessed, and are recorded before.
func TestSecrets_CreatedOnce(t *testing.T) {
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
			w := newFixture(t, plan.Options{}, test.runtime, trainJob(suspend(true)))
			w.settle()
			recorded := w.state().Spec.Decisions.SecretSuffix
			full := name + "-" + recorded
			want := []string{
				"create FrozenTrainJob", "create ConfigMap train-runtime-snapshot",
				"apply ConfigMap " + test.config,
				"create Secret " + full,
				"apply JobSet",
				"patch TrainJob status",
			}
			if diff := cmp.Diff(want, w.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if len(recorded) < 26 || w.mounted() != full {
				t.Errorf("recorded is %q, the pods mount %s", recorded, w.mounted())
			}
			w.change(suspend(false))
			w.settle()
			want = []string{
				"apply ConfigMap " + test.config,
				"create Secret " + full, // it is there
				"try to delete Secret " + full,
				"apply JobSet",
				"patch TrainJob status",
			}
			if diff := cmp.Diff(want, w.writes); diff != "" {
				t.Errorf("writes at the start (-want +got):\n%s", diff)
			}
			secret := w.secret()
			if secret.Type != test.kind || secret.Immutable == nil || !*secret.Immutable ||
				!ownership.Controls(w.job(), plan.TrainJobKind(), secret) {
				t.Errorf("the Secret is %v, immutable %v, of %v", secret.Type, secret.Immutable, secret.OwnerReferences)
			}
			test.check(t, secret.Data)
			for _, value := range []bool{true, false} {
				w.change(suspend(value))
				w.settle()
			}
			if diff := cmp.Diff(secret.Data, w.secret().Data); diff != "" {
				t.Error("the keys were made anew: pods that run could not be reached")
			}
		})
	}
}

// checkSSHKeys fails unless the keys are a pair.
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

// Two jobs of one name, one after the other, share nothing: upstream's key is derived from public data.
func TestSecrets_CertificatesDiffer(t *testing.T) {
	var texts, names []string
	for range 2 {
		w := newFixture(t, plan.Options{}, flux(), trainJob())
		w.settle()
		texts, names = append(texts, string(w.secret().Data["curve.cert"])), append(names, w.secret().Name)
	}
	if texts[0] == texts[1] || names[0] == names[1] {
		t.Errorf("twice the same certificate, or the same name:\n%s", texts[0])
	}
}

// A Secret with the fixed name of earlier versions, whatever its creator, is not mounted into a job that was never
// rendered.
func TestSecrets_ForeignAreNotMounted(t *testing.T) {
	for name, runtime := range map[string]*trainerv1alpha1.ClusterTrainingRuntime{
		"train-mpi-ssh-auth": mpi(), "train-flux-curve": flux(),
	} {
		t.Run(name, func(t *testing.T) {
			taken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			w := newFixture(t, plan.Options{}, runtime, trainJob(), taken)
			w.settle()
			if w.mounted() == name || len(w.secrets()) != 2 {
				t.Errorf("the pods mount %s of %d Secrets", w.mounted(), len(w.secrets()))
			}
		})
	}
}

// forge puts a Secret of another owner in place of the job's, as a user may who can delete and create Secrets. It
// returns its name.
func (w *fixture) forge() string {
	w.t.Helper()
	own := w.secret()
	if err := w.Client.Delete(w.t.Context(), own); err != nil {
		w.t.Fatal(err)
	}
	forged := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: own.Name},
		Data:       map[string][]byte{"ssh-privatekey": nil},
	}
	if err := w.Client.Create(w.t.Context(), forged); err != nil {
		w.t.Fatal(err)
	}
	return own.Name
}

// While a job of MPI is queued, its JobSet shows the name of its Secret. A user who creates that name first, or
// replaces the Secret, does not give the job his keys: it does not start.
func TestSecrets_ForgedWhileQueuedAreNotMounted(t *testing.T) {
	w := newFixture(t, plan.Options{}, mpi(), trainJob(suspend(true)))
	w.settle()
	taken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.mounted()}}
	if err := w.Client.Create(t.Context(), taken); !apierrors.IsAlreadyExists(err) {
		t.Errorf("creating the Secret that the JobSet names: %v", err)
	}
	name := w.forge()
	w.change(suspend(false))
	if _, err := w.reconcile(); !errors.Is(err, trainjob.ErrForeign) || !strings.Contains(err.Error(), name) {
		t.Errorf("starting with a forged Secret: %v", err)
	}
	if running := w.jobSet().Spec.Suspend; running == nil || !*running {
		t.Error("the job starts with a forged Secret")
	}
}

// asBefore turns the fixture into that of the previous release: a fixed name that nothing records.
func (w *fixture) asBefore() {
	w.t.Helper()
	state := w.state()
	jobSet := w.jobSet()
	secret := w.secret()
	suffix := "-" + state.Spec.Decisions.SecretSuffix
	state.Spec.Decisions.SecretSuffix = ""
	volumes := jobSet.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Volumes
	for i := range volumes {
		if volumes[i].Secret != nil {
			volumes[i].Secret.SecretName = strings.TrimSuffix(volumes[i].Secret.SecretName, suffix)
		}
	}
	old := secret.DeepCopy()
	old.ObjectMeta = metav1.ObjectMeta{
		Namespace: namespace, Name: strings.TrimSuffix(secret.Name, suffix), OwnerReferences: secret.OwnerReferences,
	}
	for _, err := range []error{
		w.Client.Update(w.t.Context(), state), w.Client.Update(w.t.Context(), jobSet),
		w.Client.Delete(w.t.Context(), secret), w.Client.Create(w.t.Context(), old),
	} {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// A job that the previous release has rendered continues with the Secret that its JobSet names, and nothing of it is
// replaced.
func TestSecrets_KeepFixedNamesWithTheirJobSet(t *testing.T) {
	w := newFixture(t, plan.Options{}, mpi(), trainJob(suspend(false)))
	w.settle()
	w.asBefore()
	keys := w.secret().Data
	for _, value := range []bool{true, false} {
		w.change(suspend(value))
		w.settle()
		w.settle()
	}
	if got := w.mounted(); got != "train-mpi-ssh-auth" || w.state().Spec.Decisions.SecretSuffix != "" {
		t.Errorf("the pods mount %s, recorded is %q", got, w.state().Spec.Decisions.SecretSuffix)
	}
	if diff := cmp.Diff(keys, w.secret().Data); diff != "" {
		t.Error("the keys were made anew")
	}
	w.finish(created().Add(time.Hour))
	w.clock.SetTime(created().Add(2 * time.Hour))
	w.settle()
	if diff := cmp.Diff([]string{"Secret train-mpi-ssh-auth"}, w.left()); diff != "" {
		t.Errorf("left for the garbage collector (-want +got):\n%s", diff)
	}
}

// Also without the frozen state, which is lost or of another release, the JobSet names the Secret that its pods mount.
func TestSecrets_AreReadOffTheJobSet(t *testing.T) {
	w := newFixture(t, plan.Options{}, mpi(), trainJob(suspend(false)))
	w.settle()
	before := w.mounted()
	if err := w.Client.Delete(t.Context(), w.state()); err != nil {
		t.Fatal(err)
	}
	for _, value := range []bool{true, false} {
		w.change(suspend(value))
		w.settle()
	}
	if w.mounted() != before || w.secret().Name != before {
		t.Errorf("the pods mount %s, before %s", w.mounted(), before)
	}
}

// Where an earlier version has frozen a job and its JobSet was deleted, a random name is recorded first, and then used.
func TestSecrets_GetARandomNameWithTheNextJobSet(t *testing.T) {
	w := newFixture(t, plan.Options{}, mpi(), trainJob(suspend(false)))
	w.settle()
	w.asBefore()
	if err := w.Client.Delete(t.Context(), w.jobSet()); err != nil {
		t.Fatal(err)
	}
	w.settle()
	full := "train-mpi-ssh-auth-" + w.state().Spec.Decisions.SecretSuffix
	if w.state().Spec.Decisions.SecretSuffix == "" || w.mounted() != full {
		t.Fatalf("recorded is %q, the pods mount %s", w.state().Spec.Decisions.SecretSuffix, w.mounted())
	}
	if len(w.writes) < 2 || w.writes[0] != "patch FrozenTrainJob" {
		t.Errorf("writes %v, want the record first", w.writes)
	}
}
