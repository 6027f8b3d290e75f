package anonymize

import (
	"encoding/json"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/topology"
)

// isLabels reports whether a field holds labels, or selects by them.
func isLabels(field reflect.StructField) bool {
	switch field.Name {
	case "Labels", "MatchLabels", "NodeSelector", "Selector":
		return field.Type == reflect.TypeFor[map[string]string]()
	}
	return false
}

// metadata renames everything in an ObjectMeta but the name.
func (w *walker) metadata(v reflect.Value) {
	for field, value := range v.Fields() {
		switch {
		case isLabels(field):
			w.labels(value)
		case field.Name == "Annotations":
			w.annotations(value)
		case field.Name != "Name":
			w.walk(value, ruleOf(v.Type(), field.Name))
		}
	}
}

// labels renames labels by the meaning of their keys.
func (w *walker) labels(v reflect.Value) {
	w.pairs(v, w.valueOf)
}

// annotations renames annotations. Only those that placement reads are more than a pair of names.
func (w *walker) annotations(v reflect.Value) {
	w.pairs(v, w.annotation)
}

func (w *walker) pairs(v reflect.Value, rename func(key, value string) string) {
	pairs, ok := reflect.TypeAssert[map[string]string](v)
	if !ok || pairs == nil {
		return
	}
	renamed := make(map[string]string, len(pairs))
	for key, value := range pairs {
		renamed[keyed(w, key)] = rename(key, value)
	}
	v.Set(reflect.ValueOf(renamed))
}

func (w *walker) annotation(key, value string) string {
	domain, _, _ := strings.Cut(key, "/")
	switch {
	case key == topology.AnnotationLateMembers:
		return w.lateMembers(value)
	case strings.HasSuffix(key, "-topology") && (domain == "lockstep.dev" || domain == "kueue.x-k8s.io"):
		return keyed(w, value)
	case (domain == "lockstep.dev" || domain == "simulator.lockstep.dev") && speaksForItself(value):
		return value
	case key == migratedPlugins:
		return each(w, value, ",", keyed)
	}
	return dictated(w, value)
}

// migratedPlugins is the annotation of CSINodes that names the volume plugins which CSI drivers stand in for.
const migratedPlugins = "storage.alpha.kubernetes.io/migrated-plugins"

// lateMembers renames in the pod templates that a PodGroup announces. An unreadable value is a text like any other.
func (w *walker) lateMembers(value string) string {
	var templates []corev1.PodTemplateSpec
	if err := json.Unmarshal([]byte(value), &templates); err != nil {
		return dictated(w, value)
	}
	for i := range templates {
		w.walk(reflect.ValueOf(&templates[i]), dictated)
	}
	text, err := json.Marshal(templates)
	if err != nil {
		return dictated(w, value)
	}
	return string(text)
}

// valueOf renames the value of a label or a taint. The parts of a value that is made of several are renamed one by one.
func (w *walker) valueOf(key, value string) string {
	if word(value) {
		return value
	}
	switch key {
	case topology.LabelClique: // <cluster>.<number>
		if at := strings.LastIndexByte(value, '.'); at > 0 && isNumber(value[at+1:]) {
			return w.valueOf("", value[:at]) + "." + w.valueOf("", value[at+1:])
		}
	case corev1.LabelTopologyZone, corev1.LabelTopologyRegion: // a volume of several zones: one__two
		if one, rest, ok := strings.Cut(value, "__"); ok {
			return w.valueOf("", one) + "__" + w.valueOf(key, rest)
		}
	}
	return w.value(w.values, key, value)
}

func (w *walker) valuesOf(key string, values []string) []string {
	renamed := make([]string, len(values))
	for i, value := range values {
		renamed[i] = w.valueOf(key, value)
	}
	if values == nil {
		return nil
	}
	return renamed
}
