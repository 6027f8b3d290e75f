package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/controller/config"
)

// meetTrainer returns the options with which to continue: without a takeover if there is no namespace to take over
// from.
func meetTrainer(ctx context.Context, client kubernetes.Interface, options config.Options) (config.Options, error) {
	if options.TakeOver == "" {
		return options, nil
	}
	_, err := client.CoreV1().Namespaces().Get(ctx, options.TakeOver, metav1.GetOptions{})
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
