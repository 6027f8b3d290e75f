package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/guard"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// accountPrefix begins the user names of ServiceAccounts; namespace and name follow.
const accountPrefix = "system:serviceaccount:"

var (
	// ErrNoState indicates that the cluster does not serve FrozenTrainJobs.
	ErrNoState = errors.New(
		"this cluster does not serve FrozenTrainJobs (" + statev1alpha1.Group + "/" + statev1alpha1.Version + ")",
	)
	// ErrUnguarded indicates that an admission policy does nothing, so that users could forge the controller's input.
	ErrUnguarded = errors.New("users of this cluster could forge the controller's input")
)

// trust refuses a cluster in which users could forge the controller's input: one that does not serve FrozenTrainJobs,
// or whose admission policies do not hold.
func trust(ctx context.Context, found surveyed) error {
	options := found.options
	controller, err := gangapi.Client(found.access, found.offer.API)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	if err := servesState(controller); err != nil {
		return err
	}
	self, err := controller.AuthenticationV1().SelfSubjectReviews().
		Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking the cluster who the controller is: %w", err)
	}
	user := self.Status.UserInfo.Username
	if !strings.HasPrefix(user, accountPrefix) {
		klog.FromContext(ctx).
			Info("Admission policies are not tested: they are made for a ServiceAccount", "user", user)
		return nil
	}
	strange := rest.CopyConfig(found.access)
	strange.Impersonate = rest.ImpersonationConfig{UserName: accountPrefix + options.Namespace + ":" + guard.Account}
	stranger, err := gangapi.Client(strange, found.offer.API)
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	policies := guard.Guard{
		Controller: controller, Stranger: stranger, API: found.offer.API, Namespace: options.Namespace,
		Namespaces: options.Namespaces, Patience: options.GuardPatience,
	}
	if err := policies.Verify(ctx); err != nil {
		namespace, account, _ := strings.Cut(strings.TrimPrefix(user, accountPrefix), ":")
		command := fmt.Sprintf(
			"helm upgrade lockstep CHART --namespace %s --reuse-values --set manager.serviceAccount=%s",
			namespace,
			account,
		)
		if named := slices.Concat(options.Namespaces, found.lost); len(named) > 0 {
			command += " --set namespaces={" + strings.Join(named, ",") + "}"
		}
		if options.TakeOver != "" {
			command += " --set takeOver=" + options.TakeOver
		}
		mend := "install the chart for this account (" + command + ")"
		if errors.Is(err, guard.ErrOpen) {
			return fmt.Errorf("%w: %w; %s", ErrUnguarded, err, mend)
		}
		return fmt.Errorf("%w; if a right is missing, %s", err, mend)
	}
	klog.FromContext(ctx).V(2).Info("Admission policies hold", "user", user)
	return nil
}

// servesState returns ErrNoState if the API server does not serve FrozenTrainJobs.
func servesState(client kubernetes.Interface) error {
	found, err := client.Discovery().ServerResourcesForGroupVersion(statev1alpha1.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("discovering %s: %w", statev1alpha1.GroupVersion(), err)
	}
	if err != nil || !slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool {
		return r.Name == statev1alpha1.FrozenTrainJobResource
	}) {
		return fmt.Errorf("%w: apply the CRDs of this version (manifests/chart/crds)", ErrNoState)
	}
	return nil
}
