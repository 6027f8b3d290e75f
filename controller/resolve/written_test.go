package resolve_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-project/lockstep/controller"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

var errLive = errors.New("read past the cache")

// TestAWrittenSnapshotIsNotReadBack holds that the second look at each of a thousand new jobs costs no call, and that another
// version of the snapshot, or another job's, is read.
func TestAWrittenSnapshotIsNotReadBack(t *testing.T) {
	scheme, err := controller.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	job := &trainerv1alpha1.TrainJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train", UID: "job"},
		Spec:       trainerv1alpha1.TrainJobSpec{RuntimeRef: trainerv1alpha1.RuntimeRef{Name: "torch"}},
	}
	runtime := &trainerv1alpha1.ClusterTrainingRuntime{ObjectMeta: metav1.ObjectMeta{Name: "torch"}}
	runtime.Spec.MLPolicy = &trainerv1alpha1.MLPolicy{NumNodes: new(int32(7))}
	config, err := resolve.Snapshot(job, runtime)
	if err != nil {
		t.Fatal(err)
	}
	config.UID = "config"
	cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(config.DeepCopy()).Build()
	if err := cache.Get(t.Context(), client.ObjectKeyFromObject(config), config); err != nil {
		t.Fatal(err)
	}
	live := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errLive
		},
	}).Build()

	resolver := resolve.New(cache, live)
	if _, err := resolver.Find(t.Context(), job); !errors.Is(err, errLive) {
		t.Errorf("before it is known: %v, want a reading past the cache", err)
	}
	resolver.Written(config, job)
	found, err := resolver.Find(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(runtime.Spec, found.Runtime.Spec); diff != "" || !found.Snapshot {
		t.Errorf("snapshot %t (-want +got):\n%s", found.Snapshot, diff)
	}

	successor := job.DeepCopy()
	successor.UID = "another"
	if _, err := resolver.Find(t.Context(), successor); !errors.Is(err, errLive) {
		t.Errorf("another job of the same name: %v, want a reading past the cache", err)
	}
	config.Annotations = map[string]string{"changed": "yes"}
	if err := cache.Update(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if _, err := resolver.Find(t.Context(), job); !errors.Is(err, errLive) {
		t.Errorf("another version: %v, want a reading past the cache", err)
	}
}
