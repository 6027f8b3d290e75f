package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/lockstep-project/lockstep/controller/class"
)

// Class are the TrainJobs that the controller handles.
func (o *Options) Class() class.Class {
	return class.Class{Choice: class.Choice(o.Manage), Namespaces: o.Namespaces}
}

func (o *Options) validateNamespaces() error {
	for i, name := range o.Namespaces {
		if faults := validation.ValidateNamespaceName(name, false); len(faults) > 0 {
			return fmt.Errorf("--namespaces: %q is no name of a namespace: %s", name, strings.Join(faults, "; "))
		}
		if slices.Contains(o.Namespaces[:i], name) {
			return fmt.Errorf("--namespaces: %s is there twice", name)
		}
	}
	return nil
}
