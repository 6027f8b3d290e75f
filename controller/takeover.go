package controller

import (
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/lockstep-project/lockstep/controller/config"
	"github.com/lockstep-project/lockstep/controller/lease"
)

// bothLeases is the lock of a controller that takes over from Kubeflow Trainer: our lease and Trainer's.
func bothLeases(restConfig *rest.Config, options config.Options) (resourcelock.Interface, error) {
	access := rest.AddUserAgent(restConfig, "leader-election") // a copy
	access.Timeout = renewDeadline / 2                         // one request that hangs must not cost the lease
	client, err := coordinationv1client.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this replica: %w", err)
	}
	identity := host + "_" + string(uuid.NewUUID())
	single := func(namespace, name string) resourcelock.Interface {
		return &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		}
	}
	return &lease.Both{
		Own: single(options.Namespace, leaseName), Other: single(options.TakeOver, lease.Trainer),
	}, nil
}
