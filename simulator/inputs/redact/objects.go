// Package redact removes possible secrets from Kubernetes objects and logs. An object is its JSON, as encoding/json
// decodes it into a map[string]any; all functions change it in place, and do so equally for Pods, templates, TrainJobs,
// patches and lists of them.
package redact

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// removed stands for a value that was removed.
const removed = "(removed)"

// Object removes all that the other functions remove.
func Object(object any) {
	Environment(object)
	Commands(object)
	Annotations(object)
	Texts(object)
}

// Environment removes the values of environment variables and of HTTP headers. References to Secrets and ConfigMaps
// stay.
func Environment(object any) {
	walk(object, func(key string, value any) (any, bool) {
		list, ok := value.([]any)
		if !ok || key != "env" && key != "httpHeaders" {
			return value, true
		}
		for _, entry := range list {
			if variable, ok := entry.(map[string]any); ok {
				delete(variable, "value")
			}
		}
		return list, true
	})
}

// Commands removes the elements of commands and arguments, of containers, probes and trainers, and the parameters of
// volumes' drivers. The number of elements stays.
func Commands(object any) {
	walk(object, func(key string, value any) (any, bool) {
		switch key {
		case "command", "args":
			if list, ok := value.([]any); ok {
				for i := range list {
					list[i] = removed
				}
			}
		case "volumeAttributes", "options":
			if parameters, ok := value.(map[string]any); ok {
				for name := range parameters {
					parameters[name] = removed
				}
			}
		}
		return value, true
	})
}

// Annotations removes the values of annotations but for those of Kubernetes, its special interest groups, Kubeflow,
// Helm and Lockstep, and removes kubectl's copy of the object and managed fields as a whole.
func Annotations(object any) {
	walk(object, func(key string, value any) (any, bool) {
		if key == "managedFields" {
			return nil, false
		}
		annotations, ok := value.(map[string]any)
		if !ok || key != "annotations" {
			return value, true
		}
		for name := range annotations {
			switch {
			case name == "kubectl.kubernetes.io/last-applied-configuration":
				delete(annotations, name)
			case !known(name):
				annotations[name] = removed
			}
		}
		return annotations, true
	})
}

// known reports whether an annotation has a domain whose annotations have documented meanings, none of them a
// credential.
func known(annotation string) bool {
	domain, _, prefixed := strings.Cut(annotation, "/")
	if !prefixed {
		return false
	}
	for _, owner := range []string{"kubernetes.io", "k8s.io", "kubeflow.org", "helm.sh", "lockstep.dev"} {
		if domain == owner || strings.HasSuffix(domain, "."+owner) {
			return true
		}
	}
	return false
}

// Texts applies Text to every string of an object that is no name of Kubernetes: names that look like a token
// distinguish objects.
func Texts(object any) {
	walk(object, func(_ string, value any) (any, bool) {
		if text, ok := value.(string); ok && len(validation.IsDNS1123Subdomain(text)) > 0 {
			return Text(text), true
		}
		return value, true
	})
}

// walk replaces every field of an object, and every element of its lists, by the value that change returns for it, or
// deletes the field if change returns false. The key of an element is that of its list. Fields are visited before those
// below them.
func walk(object any, change func(key string, value any) (any, bool)) {
	switch object := object.(type) {
	case map[string]any:
		for key, value := range object {
			changed, keep := change(key, value)
			if !keep {
				delete(object, key)
				continue
			}
			object[key] = changed
			walkBelow(key, changed, change)
		}
	case []any:
		walkBelow("", object, change)
	}
}

// walkBelow is walk for the value of a field.
func walkBelow(key string, value any, change func(string, any) (any, bool)) {
	list, ok := value.([]any)
	if !ok {
		walk(value, change)
		return
	}
	for i, element := range list {
		if changed, keep := change(key, element); keep {
			list[i] = changed
		}
		walkBelow(key, list[i], change)
	}
}
