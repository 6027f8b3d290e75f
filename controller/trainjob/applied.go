package trainjob

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// rememberedObjects bounds the remembered applies: some dozen bytes each.
const rememberedObjects = 65536

// applied remembers the last applied content of an object and the object's version then. Each change of its own or its
// JobSet's status requeues a suspended job, and a repeated apply costs as much as a new one. It is for objects that the
// cache shows only in part, and for those that other writers change all the time; intact.go covers the facts that must
// survive a restart. The zero value remembers nothing.
type applied struct {
	once  sync.Once
	known *lru.Cache
}

// mark is one state of one object: the hash of the applied content, and the version that resulted.
type mark struct {
	content [sha256.Size]byte
	version string
}

func (a *applied) memory() *lru.Cache {
	a.once.Do(func() { a.known = lru.New(rememberedObjects) })
	return a.known
}

// holds reports whether the object of that UID still has the version that resulted from the same content.
func (a *applied) holds(uid types.UID, now mark) bool {
	last, known := a.memory().Get(uid)
	return known && uid != "" && last == now
}

// knows reports whether this process has applied the object of that UID.
func (a *applied) knows(uid types.UID) bool {
	_, known := a.memory().Get(uid)
	return known
}

func (a *applied) remember(uid types.UID, now mark) { a.memory().Add(uid, now) }

func markOf(content *unstructured.Unstructured, version string) (mark, error) {
	text, err := json.Marshal(content.Object)
	if err != nil {
		return mark{}, fmt.Errorf("printing %s: %w", describe(content), err)
	}
	return mark{content: sha256.Sum256(text), version: version}, nil
}

// applyJobSet applies a JobSet, unless the existing one equals the result of applying it, or has not changed since it
// was applied last.
func (r *Reconciler) applyJobSet(ctx context.Context, planned frozenPlan, there *jobsetv1alpha2.JobSet) error {
	content, err := jobSetContent(planned.JobSet, there)
	if err != nil {
		return err
	}
	version := ""
	if there != nil {
		if stands, err := planned.stands(content, there); err != nil || stands {
			return err
		}
		version = strconv.FormatInt(there.Generation, 10)
	}
	now, err := markOf(content, version)
	if err != nil {
		return err
	}
	// Its status is not ours, so only its generation counts, and our entries in its metadata, which has no generation.
	if there != nil && r.applied.holds(there.UID, now) && within(planned.JobSet.Labels, there.Labels) &&
		within(planned.JobSet.Annotations, there.Annotations) {
		return nil
	}
	if err := r.withdraw(ctx, planned, there); err != nil {
		return err
	}
	if err := r.applyUnstructured(ctx, content); err != nil {
		return err
	}
	now.version = strconv.FormatInt(content.GetGeneration(), 10) // the answer has replaced the request
	r.applied.remember(content.GetUID(), now)
	return nil
}

// jobSetContent returns the applied fields of a planned JobSet over the existing one, which is nil if there is none.
func jobSetContent(planned, there *jobsetv1alpha2.JobSet) (*unstructured.Unstructured, error) {
	content, err := plan.Applicable(withFixed(planned, there))
	if err != nil {
		return nil, err
	}
	dropEmptyMetadata(content.Object)
	return content, nil
}

// applyConfig applies a ConfigMap that is known by its metadata only, unless that shows that it is the wanted one, or
// that it has not changed since it was applied last.
func (r *Reconciler) applyConfig(ctx context.Context, config, have client.Object) error {
	if intact(have, config) {
		return nil
	}
	content, err := plan.Applicable(config)
	if err != nil {
		return err
	}
	return r.applyVersion(ctx, content, have)
}

// applyVersion applies an object, unless its resourceVersion and content have not changed since the last apply.
func (r *Reconciler) applyVersion(ctx context.Context, content *unstructured.Unstructured, have client.Object) error {
	dropEmptyMetadata(content.Object)
	now, err := markOf(content, have.GetResourceVersion())
	if err != nil || r.applied.holds(have.GetUID(), now) {
		return err
	}
	if err := r.applyUnstructured(ctx, content); err != nil {
		return err
	}
	now.version = content.GetResourceVersion()
	r.applied.remember(content.GetUID(), now)
	return nil
}

// within reports whether all that is in one map is in the other.
func within(some, all map[string]string) bool {
	for key, value := range some {
		if found, ok := all[key]; !ok || found != value {
			return false
		}
	}
	return true
}
