package config

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// errShape indicates a shape that cannot be read.
var errShape = errors.New("must be resources as in cpu=96,nvidia.com/gpu=8")

// parseShape reads the resources of a node.
func parseShape(text string) (corev1.ResourceList, error) {
	shape := corev1.ResourceList{}
	for part := range strings.SplitSeq(text, ",") {
		name, count, ok := strings.Cut(part, "=")
		if !ok || name == "" {
			return nil, errShape
		}
		quantity, err := resource.ParseQuantity(count)
		if err != nil || quantity.Sign() < 0 {
			return nil, fmt.Errorf("%s: %w", part, errShape)
		}
		shape[corev1.ResourceName(name)] = quantity
	}
	return shape, nil
}
