package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// addNodes creates the fleet and waits until every node is ready and free of the taints of its birth.
func (c *Cluster) addNodes(ctx context.Context, nodes []corev1.Node) error {
	wanted := map[string]bool{}
	for i := range nodes {
		node := nodes[i].DeepCopy()
		// Those of a real cluster's nodes lead to kubelets that are not here.
		node.Status.Addresses, node.Status.DaemonEndpoints = nil, corev1.NodeDaemonEndpoints{}
		if _, err := c.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
				return &badinput.Error{
					Where: "--fleet",
					What:  "the API server refuses node " + nodes[i].Name + ": " + err.Error(),
					Mend:  "correct the fleet",
				}
			}
			return fmt.Errorf("creating node %s: %w", nodes[i].Name, err)
		}
		wanted[nodes[i].Name] = true
	}
	unready := len(nodes)
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			list, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, fmt.Errorf("listing nodes: %w", err)
			}
			unready = 0
			for i := range list.Items {
				if wanted[list.Items[i].Name] && !nodeReady(&list.Items[i]) {
					unready++
				}
			}
			return unready == 0, nil
		})
	if err != nil {
		return fmt.Errorf("waiting for the nodes: %w (%d of %d not ready)", err, unready, len(nodes))
	}
	return nil
}

func nodeReady(node *corev1.Node) bool {
	birth := slices.ContainsFunc(
		node.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady },
	)
	return !birth && slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}
