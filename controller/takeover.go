package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/controller/class"
	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/controller/lease"
)

// ErrRival indicates that a Kubeflow Trainer works in the cluster, whose jobs would have two owners.
var ErrRival = errors.New("a Kubeflow Trainer works in this cluster")

// rivalPatience is for how long a lease counts as held after its last renewal: four times as long as Kubeflow Trainer's lasts, because its
// clock is not ours.
const rivalPatience = time.Minute

// meetTrainer refuses to work on the jobs of a Kubeflow Trainer that works, and returns the options with which to go on. All of its leases
// are looked at, because an administrator chooses the namespace. One that elects no leader cannot be seen.
func meetTrainer(
	ctx context.Context, client kubernetes.Interface, options config.Options, now time.Time,
) (config.Options, error) {
	if options.Manage == string(class.Chosen) {
		return options, nil
	}
	leases, err := client.CoordinationV1().Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, lease.Trainer).String(),
	})
	if err != nil {
		return options, fmt.Errorf("looking for a Kubeflow Trainer: %w", err)
	}
	for i := range leases.Items {
		found := &leases.Items[i]
		if held(found, now) && found.Namespace != options.TakeOver {
			return options, fmt.Errorf(
				"%w: %s holds lease %s/%s; --take-over=%s takes over from it, --manage=%s works beside it",
				ErrRival,
				*found.Spec.HolderIdentity,
				found.Namespace,
				found.Name,
				found.Namespace,
				class.Chosen,
			)
		}
	}
	if options.TakeOver == "" {
		return options, nil
	}
	_, err = client.CoreV1().Namespaces().Get(ctx, options.TakeOver, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		klog.FromContext(ctx).
			Info("Nothing to take over: the namespace of Kubeflow Trainer does not exist", "namespace", options.TakeOver)
		options.TakeOver = ""
	case err != nil:
		return options, fmt.Errorf("looking for a Kubeflow Trainer: %w", err)
	}
	return options, nil
}

// held reports whether a lease has a holder who renews it.
func held(found *coordinationv1.Lease, now time.Time) bool {
	return ptr.Deref(found.Spec.HolderIdentity, "") != "" && found.Spec.RenewTime != nil &&
		now.Sub(found.Spec.RenewTime.Time) < rivalPatience
}
