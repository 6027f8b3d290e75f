package integration_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// forge writes, changes and deletes objects that could pass for the job's copy, with one shape of owners, until ctx
// ends.
func (f *forgery) forge(
	ctx context.Context, name string, rng *rand.Rand, owners func(string, types.UID) []metav1.OwnerReference,
	uid <-chan types.UID, i int,
) {
	tenant := f.tenants[i%len(f.tenants)]
	copies := tenant.Resource(configMaps).Namespace(f.namespace)
	states := tenant.Resource(frozenJobs)
	var of types.UID
	for ctx.Err() == nil {
		select {
		case of = <-uid:
		default:
		}
		forged := f.copyOf(name, of, owners)
		switch rng.IntN(6) {
		case 0, 1:
			_, err := copies.Create(ctx, forged, metav1.CreateOptions{})
			f.count(err)
		case 2:
			f.count(copies.Delete(ctx, forged.GetName(), metav1.DeleteOptions{}))
		case 3:
			_, err := copies.Update(ctx, forged, metav1.UpdateOptions{})
			f.count(err)
		case 4: // an update may pass where a create is refused
			bare := forged.DeepCopy()
			bare.SetOwnerReferences(nil)
			unstructured.RemoveNestedField(bare.Object, "immutable")
			_, err := copies.Create(ctx, bare, metav1.CreateOptions{})
			f.count(err)
			_, err = copies.Update(ctx, forged, metav1.UpdateOptions{})
			f.count(err)
		case 5: // in the namespace of the forger, and in the controller's
			for _, namespace := range []string{f.namespace, "lockstep-system"} {
				state := f.stateOf(namespace, name, of)
				_, err := states.Namespace(namespace).Create(ctx, state, metav1.CreateOptions{})
				f.count(err)
				_, err = states.Namespace(namespace).Update(ctx, state, metav1.UpdateOptions{})
				f.count(err)
				f.count(states.Namespace(namespace).Delete(ctx, state.GetName(), metav1.DeleteOptions{}))
			}
		}
	}
}

// count counts the writes that the API server admitted.
func (f *forgery) count(err error) {
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrote++
}

// copyOf returns a forged copy of a runtime for a job, as the version before, and Kubeflow Trainer, store it.
func (f *forgery) copyOf(
	name string, of types.UID, owners func(string, types.UID) []metav1.OwnerReference,
) *unstructured.Unstructured {
	config := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
		"data": map[string]any{"runtime": f.forged()},
	}}
	config.SetNamespace(f.namespace)
	config.SetName(name + "-runtime-snapshot")
	if of != "" {
		config.SetOwnerReferences(owners(name, of))
	}
	return config
}

// stateOf returns a forged state of a job, as this version stores it.
func (f *forgery) stateOf(namespace, name string, of types.UID) *unstructured.Unstructured {
	var runtime map[string]any
	if err := json.Unmarshal([]byte(f.forged()), &runtime); err != nil {
		panic(err)
	}
	if of == "" {
		of = "00000000-0000-0000-0000-000000000000"
	}
	state := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "state.lockstep.dev/v1alpha1", "kind": "FrozenTrainJob",
		"spec": map[string]any{
			"trainJob": map[string]any{"namespace": f.namespace, "name": name, "uid": string(of)},
			"runtime":  runtime,
		},
	}}
	state.SetNamespace(namespace)
	state.SetName(string(of))
	return state
}

// forged is the administrator's runtime as the tenant wants it, as JSON, which is YAML too.
func (f *forgery) forged() string {
	forged := f.runtime.DeepCopy()
	replicated, _, _ := unstructured.NestedSlice(forged.Object, "spec", "template", "spec", "replicatedJobs")
	pod := map[string]any{
		"hostPID": true, "hostNetwork": true, "priorityClassName": forgedMark + "-top",
		"containers": []any{map[string]any{"name": "node", "image": "example.com/" + forgedMark + "-image:1"}},
		"volumes":    []any{map[string]any{"name": forgedMark + "-root", "hostPath": map[string]any{"path": "/"}}},
	}
	_ = unstructured.SetNestedField(replicated[0].(map[string]any), pod, "template", "spec", "template", "spec")
	_ = unstructured.SetNestedSlice(forged.Object, replicated, "spec", "template", "spec", "replicatedJobs")
	content, err := json.Marshal(forged.Object)
	if err != nil {
		panic(err)
	}
	return string(content)
}

// falseOwners are the shapes in which a forger claims that an object is the job's, the true one among them: one forger
// each.
func falseOwners() []func(name string, uid types.UID) []metav1.OwnerReference {
	shape := func(apiVersion, kind string) func(string, types.UID) []metav1.OwnerReference {
		return func(name string, uid types.UID) []metav1.OwnerReference {
			return []metav1.OwnerReference{
				{
					APIVersion:         apiVersion,
					Kind:               kind,
					Name:               name,
					UID:                uid,
					Controller:         new(true),
					BlockOwnerDeletion: new(true),
				},
			}
		}
	}
	const trainer = "trainer.kubeflow.org/v1alpha1"
	renamed := func(_ string, uid types.UID) []metav1.OwnerReference { return shape(trainer, "TrainJob")("other", uid) }
	second := func(name string, uid types.UID) []metav1.OwnerReference {
		weak := shape(trainer, "TrainJob")(name, uid)
		weak[0].Controller = nil
		return append(weak, shape("evil.example/v1", "Nothing")(name, uid)...)
	}
	none := func(string, types.UID) []metav1.OwnerReference { return nil }
	return []func(string, types.UID) []metav1.OwnerReference{
		shape(
			"evil.example/v1",
			"Nothing",
		),
		shape(trainer, "TrainJob"),
		shape("trainer.kubeflow.org/v2alpha1", "TrainJob"),
		shape("trainer.kubeflow.org/v9", "TrainJob"),
		shape(trainer, "TrainingRuntime"),
		shape(trainer, "trainjob"),
		shape("trainer.kubeflow.org.evil.example/v1alpha1", "TrainJob"),
		renamed,
		second,
		none,
	}
}
