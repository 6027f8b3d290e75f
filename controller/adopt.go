package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/controller/trainjob"
	"github.com/lockstep-project/lockstep/manifests/probe"
)

// AdoptedJob is the result of a dry run for one TrainJob.
type AdoptedJob struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	trainjob.Adoption
}

// PreviewAdoption returns the first action of a controller with these options for each TrainJob of a namespace, or of
// all namespaces if it is empty: by the controller's own planner, and by dry runs of its applies. Nothing is written.
func PreviewAdoption(
	ctx context.Context, restConfig *rest.Config, options config.Options, namespace string,
) ([]AdoptedJob, error) {
	return preview(ctx, restConfig, options, namespace, (*trainjob.Reconciler).PreviewAdoption)
}

// PreviewReturn returns the action that each TrainJob needs before Kubeflow Trainer can manage it again. Nothing is
// written.
func PreviewReturn(
	ctx context.Context, restConfig *rest.Config, options config.Options, namespace string,
) ([]AdoptedJob, error) {
	return preview(ctx, restConfig, options, namespace, (*trainjob.Reconciler).PreviewReturn)
}

func preview(
	ctx context.Context, restConfig *rest.Config, options config.Options, namespace string,
	look func(*trainjob.Reconciler, context.Context, *trainerv1alpha1.TrainJob) (trainjob.Adoption, error),
) ([]AdoptedJob, error) {
	reconciler, err := dryRunReconciler(ctx, restConfig, options)
	if err != nil {
		return nil, err
	}
	var jobs trainerv1alpha1.TrainJobList
	if err := reconciler.Client.List(ctx, &jobs, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing TrainJobs: %w", err)
	}
	adopted := make([]AdoptedJob, 0, len(jobs.Items))
	for i := range jobs.Items {
		job := &jobs.Items[i]
		found, err := look(reconciler, ctx, job)
		if err != nil {
			return nil, fmt.Errorf("TrainJob %s: %w", client.ObjectKeyFromObject(job), err)
		}
		adopted = append(adopted, AdoptedJob{Namespace: job.Namespace, Name: job.Name, Adoption: found})
	}
	return adopted, nil
}

// dryRunReconciler returns a reconciler without a cache; its writes are dry runs.
func dryRunReconciler(
	ctx context.Context, restConfig *rest.Config, options config.Options,
) (*trainjob.Reconciler, error) {
	// The controller's namespace may not exist yet; the API server answers the same for every namespace.
	clients, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	offer, err := probe.Cluster(ctx, clients, metav1.NamespaceDefault, probe.Choice{Wanted: options.GangAPI})
	if err != nil {
		return nil, fmt.Errorf("asking the cluster what it offers: %w", err)
	}
	scheme, err := Scheme(offer.API)
	if err != nil {
		return nil, err
	}
	limited := rest.CopyConfig(restConfig)
	limited.QPS, limited.Burst = options.QueriesPerSecond, options.Burst
	direct, err := client.New(limited, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	trying := withoutState{client.NewDryRunClient(direct)}
	return &trainjob.Reconciler{
		Client: trying, Live: trying, Resolver: resolve.New(trying, trying, options.Namespace),
		Options: planningFor(options, offer), Class: options.Class(), Clock: clock.RealClock{},
	}, nil
}

// withoutState is a client of a cluster that may not serve FrozenTrainJobs yet: no job has any then.
type withoutState struct{ client.Client }

// Get reads an object.
func (c withoutState) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	err := c.Client.Get(ctx, key, object, options...)
	if _, isState := object.(*statev1alpha1.FrozenTrainJob); isState && meta.IsNoMatchError(err) {
		resource := statev1alpha1.GroupVersion().WithResource(statev1alpha1.FrozenTrainJobResource)
		return apierrors.NewNotFound(resource.GroupResource(), key.Name) //nolint:wrapcheck // callers look at its kind
	}
	return err //nolint:wrapcheck // the reconciler adds the context
}
