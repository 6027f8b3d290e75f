package anonymize

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// dictated is the rule of every text that no other rule is for: a pseudonym, unless it is a word.
func dictated(w *walker, s string) string { return as(classText)(w, s) }

// as is dictated for a text that stands for something of a class.
func as(class string) rule {
	return func(w *walker, s string) string {
		if word(s) {
			return s
		}
		return w.say(class, s)
	}
}

// keyed is for keys of labels and everything that is named like them.
func keyed(w *walker, s string) string {
	switch {
	case word(s):
		return s
	case w.levels[s], keepsKey(s):
		return w.keep(s)
	}
	return w.say(classKey, s)
}

func kept(_ *walker, s string) string { return s }

func dropped(*walker, string) string { return "" }

// grouped is for API groups, alone or with a version: those of Kubernetes have no dots, or are of a domain that all
// have.
func grouped(w *walker, s string) string {
	group, _, _ := strings.Cut(s, "/")
	if !strings.Contains(group, ".") || keepsKey(group+"/") {
		return s
	}
	return dictated(w, s)
}

// imaged is for container images. One without a tag is the one tagged latest, also to the scheduler, which adds the tag
// before it looks for the image on nodes; so pseudonyms have one.
func imaged(w *walker, s string) string {
	if s == "" {
		return s
	}
	if !tagged(s) {
		s += ":latest"
	}
	return w.say(classImage, s) + ":latest"
}

// stored renames the images that a node has, whose names get no additions.
func stored(w *walker, s string) string {
	if !tagged(s) {
		return dictated(w, s)
	}
	return imaged(w, s)
}

func tagged(image string) bool {
	return strings.LastIndexByte(image, ':') > strings.LastIndexByte(image, '/')
}

// requested is for the name of a device request, in which the name of an alternative may follow.
func requested(w *walker, s string) string { return each(w, s, "/", dictated) }

func each(w *walker, s, separator string, rule rule) string {
	parts := strings.Split(s, separator)
	for i, part := range parts {
		parts[i] = rule(w, part)
	}
	return strings.Join(parts, separator)
}

// deviceClassPrefix begins the names of the resources that stand for one device of a class.
const deviceClassPrefix = "deviceclass.resource.kubernetes.io/"

func resourced(w *walker, s string) string {
	if class, ok := strings.CutPrefix(s, deviceClassPrefix); ok {
		return deviceClassPrefix + dictated(w, class)
	}
	return s
}

func expressed(w *walker, s string) string {
	w.express(s)
	return s
}

// ruleOf is the rule for a field, by its name and by the structure it is in.
func ruleOf(owner reflect.Type, field string) rule {
	ofDevices := strings.HasSuffix(owner.PkgPath(), "k8s.io/api/resource/v1")
	switch field {
	case "Key", "TopologyKey", "TopologyKeys", "MatchLabelKeys", "MismatchLabelKeys", "Finalizers",
		"Provisioner", "Attacher", "Manager", "ManagedBy", "Type":
		return keyed
	case "APIVersion", "APIGroup":
		return grouped
	case "Message", "ContainerID", "ImageID", "Description":
		return dropped
	case "DeclaredFeatures", "ResourceVersion":
		return kept
	case "ResourceName", "ExtendedResourceName":
		return resourced
	case "Expression":
		return expressed
	case "Request", "Requests":
		return requested
	case "Image":
		return imaged
	case "NodeName", "NominatedNodeName":
		return as(classNode)
	case "Namespace", "Namespaces":
		return as(classNamespace)
	}
	switch {
	case ofDevices && field == "Driver":
		return kept
	case owner == reflect.TypeFor[corev1.ContainerImage]() && field == "Names":
		return stored
	}
	return dictated
}

// ruleOfType is the rule for a text of a type of its own. Most are enumerations, which are retained; these are not.
func ruleOfType(t reflect.Type, rule rule) rule {
	switch t {
	case reflect.TypeFor[string]():
		return rule
	case reflect.TypeFor[types.UID]():
		return as(classUID)
	case reflect.TypeFor[types.NodeName]():
		return as(classNode)
	case reflect.TypeFor[corev1.ResourceName]():
		return resourced
	case reflect.TypeFor[corev1.UniqueVolumeName](), reflect.TypeFor[corev1.ResourceID](),
		reflect.TypeFor[corev1.Capability]():
		return dictated
	}
	if strings.HasSuffix(t.Name(), "ConditionType") || t == reflect.TypeFor[corev1.FinalizerName]() {
		return keyed // any client may add a condition, or wait for one
	}
	return kept
}
