package resolve

import (
	"context"
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

const (
	// snapshotSuffix and snapshotKey are where upstream 2.3 keeps snapshots too (KEP-2599): a cluster can change controllers
	// while jobs run.
	snapshotSuffix = "-runtime-snapshot"
	snapshotKey    = "runtime"
)

// SnapshotName is the name of the ConfigMap with the runtime as it was when the job was first rendered.
func SnapshotName(job *trainerv1alpha1.TrainJob) string { return job.Name + snapshotSuffix }

// Snapshot is the ConfigMap that keeps a runtime for a job: the whole object in YAML. Nobody can change it, only delete it;
// then the runtime as it is by then counts.
func Snapshot(job *trainerv1alpha1.TrainJob, live client.Object) (*corev1.ConfigMap, error) {
	object, ok := live.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("copying runtime %s: not an API object", live.GetName())
	}
	// A typed client leaves the kind out, and who wrote which field is no part of a runtime.
	ref := ReferenceOf(job)
	object.GetObjectKind().SetGroupVersionKind(trainerv1alpha1.GroupVersion().WithKind(ref.Kind))
	object.SetManagedFields(nil)
	content, err := yaml.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("printing %s: %w", ref.name(), err)
	}
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: SnapshotName(job), OwnerReferences: plan.Owners(job),
		},
		Immutable: new(true),
		Data:      map[string]string{snapshotKey: string(content)},
	}, nil
}

// identity tells one version of one ConfigMap from all others, and whose it is to be.
type identity struct {
	config, job types.UID
	version     string
}

// snapshot reads the job's snapshot; ok is false if there is none.
func (r *Resolver) snapshot(
	ctx context.Context, job *trainerv1alpha1.TrainJob, ref Reference,
) (result Found, ok bool, err error) {
	key := client.ObjectKey{Namespace: job.Namespace, Name: SnapshotName(job)}
	known := &metav1.PartialObjectMetadata{}
	known.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err = r.cache.Get(ctx, key, known); err == nil {
		if text, ok := r.texts.Get(identity{known.UID, job.UID, known.ResourceVersion}); ok {
			if parsed, ok := r.runtimes.Get(text); ok {
				return *parsed.(*Found), true, nil //nolint:errcheck,forcetypeassert // nothing else is put there
			}
		}
	}
	var config corev1.ConfigMap
	switch err = r.live.Get(ctx, key, &config); {
	case apierrors.IsNotFound(err):
		return Found{}, false, nil
	case err != nil:
		return Found{}, false, fmt.Errorf("unable to get runtime snapshot: %w", err)
	}
	if result, err = parse(&config, job, ref); err != nil {
		return Found{}, false, err
	}
	r.remember(&config, job, &result)
	return result, true, nil
}

// Written tells of a snapshot that was just written for a job, with the identity and version that the API server gave it, so
// that it need not be read back. One that cannot be used is found when it is read.
func (r *Resolver) Written(config *corev1.ConfigMap, job *trainerv1alpha1.TrainJob) {
	if config.UID == "" {
		return
	}
	known, _ := r.runtimes.Get(sha256.Sum256([]byte(config.Data[snapshotKey])))
	if parsed, ok := known.(*Found); ok {
		r.remember(config, job, parsed)
		return
	}
	if result, err := parse(config, job, ReferenceOf(job)); err == nil {
		r.remember(config, job, &result)
	}
}

// remember keeps a parsed snapshot. The text says which runtime it is; that it is the one that the job names, the caller knows.
func (r *Resolver) remember(config *corev1.ConfigMap, job *trainerv1alpha1.TrainJob, parsed *Found) {
	content := config.Data[snapshotKey]
	if len(content) > largest {
		return
	}
	text := sha256.Sum256([]byte(content))
	r.texts.Add(identity{config.UID, job.UID, config.ResourceVersion}, text)
	r.runtimes.Add(text, parsed)
}

// parse reads a snapshot. An earlier job's, or one of another runtime, is refused. That is no defense: an owner reference can
// be written by whoever may write ConfigMaps, who so chooses what is rendered, as with upstream.
func parse(config *corev1.ConfigMap, job *trainerv1alpha1.TrainJob, ref Reference) (Found, error) {
	if !metav1.IsControlledBy(config, job) {
		return Found{}, fmt.Errorf("%w: a snapshot configmap exists but is owned by another object", ErrSnapshot)
	}
	content, ok := config.Data[snapshotKey]
	if !ok {
		return Found{}, fmt.Errorf("%w: snapshot ConfigMap missing %q data key", ErrSnapshot, snapshotKey)
	}
	object := blank(ref)
	if err := yaml.Unmarshal([]byte(content), object); err != nil {
		return Found{}, fmt.Errorf("%w: unable to unmarshal the snapshot: %w", ErrSnapshot, err)
	}
	kind := object.GetObjectKind().GroupVersionKind()
	if kind.Kind != ref.Kind || kind.Group != ref.Group || object.GetName() != ref.Key.Name {
		return Found{}, fmt.Errorf(
			"%w: the snapshot refers to the wrong runtime: expecting a runtime with name, api group "+
				"and kind of %s, %s, %s; delete ConfigMap %s",
			ErrSnapshot,
			ref.Key.Name,
			ref.Group,
			ref.Kind,
			config.Name,
		)
	}
	result := found(ref, object)
	result.Snapshot, result.Live = true, nil
	return result, nil
}
