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
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	applyscheduling "k8s.io/client-go/applyconfigurations/scheduling/v1beta1"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/kubernetes"
	schedulingclient "k8s.io/client-go/kubernetes/typed/scheduling/v1beta1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

// podGroupClient is a client of scheduling.k8s.io whose PodGroups are those of another API. What else is in the group stays native.
type podGroupClient struct {
	schedulingclient.SchedulingV1beta1Interface

	requests   *rest.RESTClient
	parameters runtime.ParameterCodec
	cache      Reader
	api        API
}

func newPodGroupClient(
	config *rest.Config, client *http.Client, native kubernetes.Interface, api API,
) (*podGroupClient, error) {
	requests, scheme, err := groupClient(config, client, api)
	if err != nil {
		return nil, err
	}
	return &podGroupClient{
		SchedulingV1beta1Interface: native.SchedulingV1beta1(),
		requests:                   requests, parameters: runtime.NewParameterCodec(scheme), api: api,
	}, nil
}

// PodGroups returns the client of one namespace's PodGroups.
func (c *podGroupClient) PodGroups(namespace string) schedulingclient.PodGroupInterface {
	return &podGroups{
		ClientWithListAndApply: gentype.NewClientWithListAndApply[
			*schedulingv1beta1.PodGroup, *schedulingv1beta1.PodGroupList, *applyscheduling.PodGroupApplyConfiguration,
		](
			Plural, c.requests, c.parameters, namespace,
			func() *schedulingv1beta1.PodGroup { return &schedulingv1beta1.PodGroup{} },
			func() *schedulingv1beta1.PodGroupList { return &schedulingv1beta1.PodGroupList{} },
		),
		namespace: namespace, cache: c.cache, api: c.api,
	}
}

// podGroups is the generated client with the one patch that custom resources do not know.
type podGroups struct {
	*gentype.ClientWithListAndApply[
		*schedulingv1beta1.PodGroup, *schedulingv1beta1.PodGroupList, *applyscheduling.PodGroupApplyConfiguration,
	]

	namespace string
	cache     Reader
	api       API
}

// Patch sends a patch. The API server knows no strategic merge for custom resources; kube-scheduler and explanations write conditions
// by it, so it is merged here and put with the version that it was merged with. That costs one request, as the native patch does,
// unless the cache is behind: then the group is read and the merge repeated.
func (g *podGroups) Patch(
	ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, sub ...string,
) (*schedulingv1beta1.PodGroup, error) {
	if kind != types.StrategicMergePatchType || g.api != Resources {
		patched, err := g.ClientWithListAndApply.Patch(ctx, name, kind, patch, options, sub...)
		return patched, err //nolint:wrapcheck // it stands in place of the generated client
	}
	if !slices.Equal(sub, []string{"status"}) {
		refusal := apierrors.NewBadRequest("a strategic merge of a PodGroup is for its status")
		return nil, refusal //nolint:wrapcheck // as the API server would refuse it
	}
	base := g.cached(name)
	var written *schedulingv1beta1.PodGroup
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		merged, err := g.merge(ctx, name, base, patch)
		base = nil // what comes after a conflict is read
		if err != nil {
			return err
		}
		written, err = g.UpdateStatus(ctx, merged, metav1.UpdateOptions{
			DryRun: options.DryRun, FieldManager: options.FieldManager, FieldValidation: options.FieldValidation,
		})
		return err //nolint:wrapcheck // it stands in place of the generated client
	})
	return written, err //nolint:wrapcheck // it stands in place of the generated client
}

// Apply applies a configuration under the name of the API: the generated one has that of the native API, which the API server refuses.
func (g *podGroups) Apply(
	ctx context.Context, group *applyscheduling.PodGroupApplyConfiguration, options metav1.ApplyOptions,
) (*schedulingv1beta1.PodGroup, error) {
	applied, err := g.ClientWithListAndApply.Apply(ctx, g.named(group), options)
	return applied, err //nolint:wrapcheck // it stands in place of the generated client
}

// ApplyStatus applies a status under the name of the API.
func (g *podGroups) ApplyStatus(
	ctx context.Context, group *applyscheduling.PodGroupApplyConfiguration, options metav1.ApplyOptions,
) (*schedulingv1beta1.PodGroup, error) {
	applied, err := g.ClientWithListAndApply.ApplyStatus(ctx, g.named(group), options)
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

// merge merges a status patch into a cached group, or, if that is nil or another group of its name, into the group as it is read.
func (g *podGroups) merge(
	ctx context.Context, name string, cached *schedulingv1beta1.PodGroup, patch []byte,
) (*schedulingv1beta1.PodGroup, error) {
	if cached != nil {
		merged, err := mergeStatus(cached, patch)
		if err != nil || merged.UID == cached.UID {
			return merged, err
		}
	}
	base, err := g.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err //nolint:wrapcheck // the generated client says what it asked for
	}
	merged, err := mergeStatus(base, patch)
	if err == nil && merged.UID != base.UID { // the group that the patch is for is gone
		gone := apierrors.NewNotFound(Resources.Resource().GroupResource(), name)
		return nil, gone //nolint:wrapcheck // as the API server would say it
	}
	return merged, err
}

func (g *podGroups) cached(name string) *schedulingv1beta1.PodGroup {
	if g.cache == nil {
		return nil
	}
	return g.cache(g.namespace, name)
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
