package gangapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	applyscheduling "k8s.io/client-go/applyconfigurations/scheduling/v1beta1"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes"
	schedulingclient "k8s.io/client-go/kubernetes/typed/scheduling/v1beta1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/keymutex"
	"k8s.io/utils/lru"
)

// podGroupClient is a client of scheduling.k8s.io whose PodGroups are those of another API. Other resources of the API
// group stay native.
type podGroupClient struct {
	schedulingclient.SchedulingV1beta1Interface

	requests   *rest.RESTClient
	parameters runtime.ParameterCodec
	cache      Reader
	api        API
	// written has the groups as this process last wrote them: the cache may not show that yet.
	written *lru.Cache
	// turns serializes the merges of a group: Lockstep and kube-scheduler write a waiting gang's conditions at the same
	// time.
	turns keymutex.KeyMutex
	// limit is the limit of requests; merging is a client that does not, because a merging caller waits first.
	limit   flowcontrol.RateLimiter
	merging *rest.RESTClient
}

func newPodGroupClient(
	config *rest.Config, client *http.Client, native kubernetes.Interface, api API,
) (*podGroupClient, error) {
	requests, scheme, err := groupClient(config, client, api)
	if err != nil {
		return nil, err
	}
	limit := requests.GetRateLimiter()
	if limit == nil {
		limit = flowcontrol.NewFakeAlwaysRateLimiter()
	}
	free := rest.CopyConfig(config)
	free.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
	merging, _, err := groupClient(free, client, api)
	if err != nil {
		return nil, err
	}
	return &podGroupClient{
		SchedulingV1beta1Interface: native.SchedulingV1beta1(),
		requests:                   requests, parameters: runtime.NewParameterCodec(scheme), api: api,
		written: lru.New(remembered), turns: keymutex.NewHashed(turns), limit: limit, merging: merging,
	}, nil
}

// PodGroups returns the client of one namespace's PodGroups.
func (c *podGroupClient) PodGroups(namespace string) schedulingclient.PodGroupInterface {
	of := func(requests *rest.RESTClient) *generated {
		return gentype.NewClientWithListAndApply[
			*schedulingv1beta1.PodGroup, *schedulingv1beta1.PodGroupList, *applyscheduling.PodGroupApplyConfiguration,
		](
			Plural, requests, c.parameters, namespace,
			func() *schedulingv1beta1.PodGroup { return &schedulingv1beta1.PodGroup{} },
			func() *schedulingv1beta1.PodGroupList { return &schedulingv1beta1.PodGroupList{} },
		)
	}
	return &podGroups{
		generated: of(c.requests), merging: of(c.merging), limit: c.limit, written: c.written, turns: c.turns,
		namespace: namespace, cache: c.cache, api: c.api,
	}
}

// generated is a client as client-go's generator writes it.
type generated = gentype.ClientWithListAndApply[
	*schedulingv1beta1.PodGroup, *schedulingv1beta1.PodGroupList, *applyscheduling.PodGroupApplyConfiguration,
]

// podGroups is the generated client with the one patch that custom resources do not know.
type podGroups struct {
	*generated

	merging   *generated
	limit     flowcontrol.RateLimiter
	written   *lru.Cache
	turns     keymutex.KeyMutex
	namespace string
	cache     Reader
	api       API
}

// Patch sends a patch. The API server knows no strategic merge for custom resources; kube-scheduler and explanations
// write conditions by it, so it is merged here and put with the version that it was merged with. That costs one
// request, as the native patch does, unless the cache is behind: then the group is read and the merge repeated. The
// wait for the limit of requests precedes the merge: a caller that merged first would send an old version after its
// wait.
func (g *podGroups) Patch(
	ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, sub ...string,
) (*schedulingv1beta1.PodGroup, error) {
	if kind != types.StrategicMergePatchType || g.api != Resources {
		patched, err := g.generated.Patch(ctx, name, kind, patch, options, sub...)
		if len(options.DryRun) == 0 {
			g.remember(patched, err)
		}
		return patched, err //nolint:wrapcheck // it stands in place of the generated client
	}
	if !slices.Equal(sub, []string{"status"}) {
		refusal := apierrors.NewBadRequest("a strategic merge of a PodGroup is for its status")
		return nil, refusal //nolint:wrapcheck // as the API server would refuse it
	}
	cached := g.cached
	var written *schedulingv1beta1.PodGroup
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := g.limit.Wait(ctx); err != nil {
			return fmt.Errorf("waiting for the limit of requests: %w", err)
		}
		g.turns.LockKey(name)
		defer func() { _ = g.turns.UnlockKey(name) }() // it has been locked
		merged, err := g.merge(ctx, name, cached(name), patch)
		cached = func(string) *schedulingv1beta1.PodGroup { return nil } // after a conflict, read it live
		if err != nil {
			return err
		}
		written, err = g.merging.UpdateStatus(ctx, merged, metav1.UpdateOptions{
			DryRun: options.DryRun, FieldManager: options.FieldManager, FieldValidation: options.FieldValidation,
		})
		if len(options.DryRun) == 0 {
			g.remember(written, err)
		}
		return err //nolint:wrapcheck // it stands in place of the generated client
	})
	return written, err //nolint:wrapcheck // it stands in place of the generated client
}

// Apply applies a configuration under the name of the API: the generated one has that of the native API, which the API
// server refuses.
func (g *podGroups) Apply(
	ctx context.Context, group *applyscheduling.PodGroupApplyConfiguration, options metav1.ApplyOptions,
) (*schedulingv1beta1.PodGroup, error) {
	applied, err := g.generated.Apply(ctx, g.named(group), options)
	return applied, err //nolint:wrapcheck // it stands in place of the generated client
}

// ApplyStatus applies a status under the name of the API.
func (g *podGroups) ApplyStatus(
	ctx context.Context, group *applyscheduling.PodGroupApplyConfiguration, options metav1.ApplyOptions,
) (*schedulingv1beta1.PodGroup, error) {
	applied, err := g.generated.ApplyStatus(ctx, g.named(group), options)
	return applied, err //nolint:wrapcheck // it stands in place of the generated client
}

// named returns a copy of a configuration with the API's group and version.
func (g *podGroups) named(
	group *applyscheduling.PodGroupApplyConfiguration,
) *applyscheduling.PodGroupApplyConfiguration {
	if group == nil {
		return nil
	}
	named := *group
	return named.WithAPIVersion(g.api.Version().String())
}

// merge merges a status patch into a cached group, or, if that is nil or another group of its name, into the group as
// it is read.
func (g *podGroups) merge(
	ctx context.Context, name string, cached *schedulingv1beta1.PodGroup, patch []byte,
) (*schedulingv1beta1.PodGroup, error) {
	if cached != nil {
		merged, err := mergeStatus(cached, patch)
		if err != nil || merged.UID == cached.UID {
			return merged, err
		}
	}
	if err := g.limit.Wait(ctx); err != nil { // it is one request more
		return nil, fmt.Errorf("waiting for the limit of requests: %w", err)
	}
	base, err := g.merging.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err //nolint:wrapcheck // the generated client adds the context
	}
	merged, err := mergeStatus(base, patch)
	if err == nil && merged.UID != base.UID { // the group that the patch is for was deleted
		gone := apierrors.NewNotFound(Resources.Resource().GroupResource(), name)
		return nil, gone //nolint:wrapcheck // as the API server would say it
	}
	return merged, err
}

// turns is the number of merges that can be under way at once; by default there would be one for each processor, and
// each takes a round trip.
const turns = 256

// remembered is the number of groups whose last write the client stores. It must cover only those whose writes the
// cache does not show yet.
const remembered = 1024

func (g *podGroups) remember(written *schedulingv1beta1.PodGroup, err error) {
	if err == nil {
		g.written.Add(g.namespace+"/"+written.Name, written)
	}
}

// cached is the newest version of a group that this process knows; nil for none.
func (g *podGroups) cached(name string) *schedulingv1beta1.PodGroup {
	if g.cache == nil {
		return nil
	}
	cached := g.cache(g.namespace, name)
	last, ok := g.written.Get(g.namespace + "/" + name)
	own, isGroup := last.(*schedulingv1beta1.PodGroup)
	if !ok || !isGroup || cached == nil || own.UID != cached.UID {
		return cached
	}
	if order, err := resourceversion.CompareResourceVersion(
		own.ResourceVersion,
		cached.ResourceVersion,
	); err == nil &&
		order > 0 {
		return own
	}
	return cached
}

// mergeStatus returns a copy of a group with a strategic merge patch applied.
func mergeStatus(base *schedulingv1beta1.PodGroup, patch []byte) (*schedulingv1beta1.PodGroup, error) {
	original, err := json.Marshal(base)
	if err != nil {
		return nil, fmt.Errorf("encoding PodGroup %s: %w", base.Name, err)
	}
	merged, err := strategicpatch.StrategicMergePatch(original, patch, schedulingv1beta1.PodGroup{})
	if err != nil {
		return nil, fmt.Errorf("merging the status of PodGroup %s: %w", base.Name, err)
	}
	var group schedulingv1beta1.PodGroup
	if err := json.Unmarshal(merged, &group); err != nil {
		return nil, fmt.Errorf("decoding PodGroup %s: %w", base.Name, err)
	}
	return &group, nil
}
