package cluster

import (
	"context"
	"fmt"
	"path"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const (
	// storageClass is the class of claims that name none: the cluster has one kind of storage.
	storageClass = "simulated"
	// storageProvisioner makes its volumes.
	storageProvisioner = "simulator.lockstep.dev/volumes"
)

// volumes makes volumes out of nothing: nothing runs in the pods that mount them.
type volumes struct{}

// Provision returns a volume as large as the claim asks for, which every node can reach.
func (volumes) Provision(
	_ context.Context, wanted controller.ProvisionOptions,
) (*corev1.PersistentVolume, controller.ProvisioningState, error) {
	claim := wanted.PVC.Spec
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: wanted.PVName},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: claim.Resources.Requests[corev1.ResourceStorage],
			},
			AccessModes:                   claim.AccessModes,
			VolumeMode:                    claim.VolumeMode,
			PersistentVolumeReclaimPolicy: *wanted.StorageClass.ReclaimPolicy,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: path.Join("/simulated", wanted.PVName)},
			},
		},
	}, controller.ProvisioningFinished, nil
}

// Delete has nothing to take away.
func (volumes) Delete(context.Context, *corev1.PersistentVolume) error { return nil }

// serveVolumes makes the storage class, and volumes for its claims until ctx ends.
func (c *Cluster) serveVolumes(ctx context.Context) error {
	_, err := c.Client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        storageClass,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:   storageProvisioner,
		ReclaimPolicy: new(corev1.PersistentVolumeReclaimDelete),
	}, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("creating storage class %s: %w", storageClass, err)
	}
	// The library's log is of no use to the user of a cluster.
	ctx = klog.NewContext(ctx, logr.Discard())
	provisioner := controller.NewProvisionController(ctx, c.Client, storageProvisioner, volumes{},
		controller.LeaderElection(false), controller.MetricsPort(0))
	go provisioner.Run(ctx)
	return nil
}
