package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/topology"
)

// Gather asks a cluster. Objects that the caller may not read count as missing, except nodes and Deployments, without
// which there is no answer.
func Gather(ctx context.Context, client kubernetes.Interface, untyped dynamic.Interface) (Facts, error) {
	var facts Facts
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return facts, fmt.Errorf("asking for the cluster's version: %w", err)
	}
	facts.Version = version.GitVersion
	facts.Offer, err = probe.Cluster(ctx, client, metav1.NamespaceDefault, probe.Choice{})
	facts.Unserved, facts.Untried = errors.Is(err, gangapi.ErrNoAPI), apierrors.IsForbidden(err)
	if err != nil && !facts.Unserved && !facts.Untried {
		return facts, fmt.Errorf("asking what the cluster keeps of gangs: %w", err)
	}
	for _, gather := range []func(context.Context, kubernetes.Interface, dynamic.Interface) error{
		facts.projects, facts.fleet, facts.rights, facts.webhook,
	} {
		if err := gather(ctx, client, untyped); err != nil {
			return facts, err
		}
	}
	return facts, nil
}

// projects finds the controllers that matter, by the names of their Deployments in their charts and manifests.
func (f *Facts) projects(ctx context.Context, client kubernetes.Interface, untyped dynamic.Interface) error {
	deployments, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing Deployments: %w", err)
	}
	for i := range deployments.Items {
		found := describe(&deployments.Items[i])
		switch {
		case strings.HasPrefix(found.Name, "lockstep-"):
			f.Lockstep.Deployments = append(f.Lockstep.Deployments, found)
		case strings.Contains(found.Name, "jobset"):
			f.JobSet.Deployments = append(f.JobSet.Deployments, found)
		case strings.HasPrefix(found.Name, "kueue-controller"):
			f.Kueue.Deployments = append(f.Kueue.Deployments, found)
		case strings.HasPrefix(found.Name, "kubeflow-trainer"):
			f.Trainer.Deployments = append(f.Trainer.Deployments, found)
		}
	}
	crds := untyped.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	jobs, err := crds.Get(ctx, "trainjobs.trainer.kubeflow.org", metav1.GetOptions{})
	if err == nil {
		f.TrainerCRDs = jobs.GetAnnotations()[chart.SchemaAnnotation]
		if f.TrainerCRDs == "" {
			f.TrainerCRDs = "kubeflow"
		}
	}
	_, err = crds.Get(ctx, "jobsets.jobset.x-k8s.io", metav1.GetOptions{})
	f.JobSet.Served = err == nil
	return nil
}

// describe returns a Deployment with its version, if its image states one.
func describe(of *appsv1.Deployment) Deployment {
	found := Deployment{Namespace: of.Namespace, Name: of.Name, Ready: of.Status.ReadyReplicas, Wanted: 1}
	if of.Spec.Replicas != nil {
		found.Wanted = *of.Spec.Replicas
	}
	for _, container := range of.Spec.Template.Spec.Containers {
		name := container.Image[strings.LastIndex(container.Image, "/")+1:]
		if _, tag, tagged := strings.Cut(name, ":"); tagged {
			found.Version = tag
			break
		}
	}
	return found
}

// fleet counts the nodes' resources, by the rules of the scheduler's defaults.
func (f *Facts) fleet(ctx context.Context, client kubernetes.Interface, _ dynamic.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	f.Nodes, f.Accelerators = len(nodes.Items), map[string]int64{}
	labeled := make([]topology.Node, 0, len(nodes.Items))
	for i := range nodes.Items {
		node := &nodes.Items[i]
		labeled = append(labeled, topology.Node{Name: node.Name, Labels: node.Labels})
		for _, name := range config.DefaultAccelerators() {
			if count, ok := node.Status.Allocatable[name]; ok && !count.IsZero() {
				f.Accelerators[string(name)] += count.Value()
			}
		}
	}
	for _, level := range topology.DetectLevels(labeled) {
		f.Levels = append(f.Levels, level.Name)
	}
	slices, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil //nolint:nilerr // they are not served, or not for the caller
	}
	for i := range slices.Items {
		f.Drivers = append(f.Drivers, slices.Items[i].Spec.Driver)
	}
	f.Drivers = unique(f.Drivers)
	return nil
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// needed are the resources that an installation creates outside its namespace.
func needed() []schema.GroupResource {
	return []schema.GroupResource{
		{Resource: "namespaces"},
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
		{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"},
		{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"},
		{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
		{Group: "scheduling.k8s.io", Resource: "priorityclasses"},
		{Group: "apps", Resource: "deployments"},
	}
}

// rights asks whether the caller may create the objects of an installation, and grant roles that the caller does not
// have.
func (f *Facts) rights(ctx context.Context, client kubernetes.Interface, _ dynamic.Interface) error {
	ask := func(verb string, resource schema.GroupResource) error {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb:     verb,
				Group:    resource.Group,
				Resource: resource.Resource,
			},
		}}
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("asking for your rights: %w", err)
		}
		if !answer.Status.Allowed {
			f.Denied = append(f.Denied, verb+" "+resource.String())
		}
		return nil
	}
	for _, resource := range needed() {
		if err := ask("create", resource); err != nil {
			return err
		}
	}
	return ask("escalate", schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"})
}

// refusal is the API server's message when one of Lockstep's webhooks, the defaulter or the validator, refuses a
// TrainJob.
const refusal = `.trainjob.trainer.kubeflow.org" denied the request`

// webhook creates a TrainJob of a runtime that does not exist, as a dry run. Lockstep's webhook must refuse it.
func (f *Facts) webhook(ctx context.Context, _ kubernetes.Interface, untyped dynamic.Interface) error {
	f.Webhook.Tried = slices.ContainsFunc(
		f.Lockstep.Deployments,
		func(d Deployment) bool { return d.Name == "lockstep-controller" },
	)
	if !f.Webhook.Tried {
		return nil
	}
	jobs := untyped.Resource(
		schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"},
	)
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
		"metadata": map[string]any{"generateName": "lockstep-doctor-", "namespace": metav1.NamespaceDefault},
		"spec":     map[string]any{"runtimeRef": map[string]any{"name": "lockstep-doctor"}},
	}}
	_, err := jobs.Namespace(metav1.NamespaceDefault).
		Create(ctx, job, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case err == nil:
	case strings.Contains(err.Error(), refusal):
		f.Webhook.Refused = true
	default:
		f.Webhook.Error = err.Error()
	}
	return nil
}
