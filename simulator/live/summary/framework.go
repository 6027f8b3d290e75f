package summary

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Framework is the framework that a runtime's mlPolicy configures: torch, jax, xgboost, mpi or flux, and else plain.
func Framework(runtime *unstructured.Unstructured) string {
	for _, framework := range []string{"torch", "jax", "xgboost", "mpi", "flux"} {
		policy, _, err := unstructured.NestedFieldNoCopy(runtime.Object, "spec", "mlPolicy", framework)
		if err == nil && policy != nil {
			return framework
		}
	}
	return "plain"
}
