package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/manifests/render"
)

// errNotHosted indicates that a Deployment of the chart asks for resources that a process of this machine cannot have.
var errNotHosted = errors.New("it cannot be run on this machine")

// takeChart returns the plan with the objects that the chart renders with the values of the run, and with the commands
// of its pods. It writes their files.
func (p plan) takeChart() (plan, error) {
	release := render.Default()
	release.Values = p.values
	if _, said := p.values["dataCache"]; !said {
		// The samples run in this namespace, and one of them streams from the cache.
		release = release.With("dataCache.namespaces", []any{metav1.NamespaceDefault})
	}
	rendered, err := render.Chart(release)
	if err != nil {
		return p, fmt.Errorf("rendering the chart: %w", err)
	}
	p.chart = rendered
	return p.hostAll(rendered.Objects)
}

// hostAll returns the plan with processes that stand for the pods of the Deployments among objects.
func (p plan) hostAll(objects []*unstructured.Unstructured) (planned plan, err error) {
	if p.controllerPod, err = p.state.host(objects, controllerName); err != nil {
		return p, err
	}
	p.schedulerPod, err = p.state.host(objects, schedulerName)
	return p, err
}

// applyCharted applies the objects of the chart, except its webhooks, which are not answered yet.
func (c *Cluster) applyCharted(ctx context.Context) error {
	if err := c.ApplyAll(ctx, c.plan.chart.CRDs); err != nil {
		return err
	}
	if err := c.Apply(ctx, render.Namespace(render.Default().Namespace)); err != nil {
		return err
	}
	for _, object := range c.plan.chart.Objects {
		if isWebhooks(object) {
			continue
		}
		if err := c.Apply(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// webhooks returns the webhook configurations of the chart.
func (p plan) webhooks() []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, object := range p.chart.Objects {
		if isWebhooks(object) {
			found = append(found, object.DeepCopy())
		}
	}
	return found
}

func isWebhooks(object *unstructured.Unstructured) bool {
	return strings.HasSuffix(object.GetKind(), "WebhookConfiguration")
}
