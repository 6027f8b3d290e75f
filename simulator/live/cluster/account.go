package cluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// rootCertificates is the ConfigMap in every namespace by which pods know the API server.
const rootCertificates = "kube-root-ca.crt"

// waitForAccount waits until pods can be created in a namespace: until it has the default ServiceAccount, and the
// ConfigMap that is mounted with its token. The API server refuses pods before, and the Job controller tries again only
// a second later.
func (c *Cluster) waitForAccount(ctx context.Context, namespace string) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			_, err := c.Client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			if err == nil {
				_, err = c.Client.CoreV1().ConfigMaps(namespace).Get(ctx, rootCertificates, metav1.GetOptions{})
			}
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil, err //nolint:wrapcheck // it is below
		})
	if err != nil {
		return fmt.Errorf("waiting for the account of pods in namespace %s: %w", namespace, err)
	}
	return nil
}
