package anonymize

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// speaker returns the replacement of every text of an object: a census counts the text, and names rename it.
type speaker interface {
	// say is for a text that gets a pseudonym, keep for one that stays the same everywhere.
	say(class, s string) string
	keep(s string) string
	// value is for the value of a label or a taint, attribute for one of a device.
	value(class, key, s string) string
	attribute(name, s string) string
	// compare notes that values of a key are compared as numbers, express that an expression was read.
	compare(key string)
	express(cel string)
}

// walker visits every text of an object. Both speakers hear the same walk.
type walker struct {
	speaker
	levels map[string]bool
	// values is the class of the values of labels: those of nodes are domains.
	values string
}

// rule transforms the texts of a field.
type rule func(w *walker, s string) string

// object walks an API object from the top.
func (w *walker) object(v reflect.Value) {
	kind := strings.ToLower(v.Elem().Type().Name())
	w.values = classValue
	if kind == classNode {
		w.values = classDomain
	}
	if meta, ok := reflect.TypeAssert[metav1.Object](v); ok {
		meta.SetName(as(kind)(w, meta.GetName()))
		w.metadata(v.Elem().FieldByName("ObjectMeta"))
		for field, value := range v.Elem().Fields() {
			if field.Name != "ObjectMeta" && field.Name != "TypeMeta" {
				w.walk(value, ruleOf(v.Elem().Type(), field.Name))
			}
		}
	}
}

// walk applies a rule to the texts in v; whatever has fields has rules of its own.
func (w *walker) walk(v reflect.Value, rule rule) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			w.walk(v.Elem(), rule)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetZero()
			return
		}
		for i := range v.Len() {
			w.walk(v.Index(i), rule)
		}
	case reflect.Map:
		w.entries(v, rule)
	case reflect.String:
		v.SetString(ruleOfType(v.Type(), rule)(w, v.String()))
	case reflect.Struct:
		w.fields(v)
	default: // numbers and booleans disclose nothing
	}
}

// entries walks a map's values and keys.
func (w *walker) entries(v reflect.Value, rule rule) {
	if v.IsNil() {
		return
	}
	renamed := reflect.MakeMapWithSize(v.Type(), v.Len())
	for key, value := range v.Seq2() {
		newKey, newValue := reflect.New(key.Type()).Elem(), reflect.New(value.Type()).Elem()
		newKey.Set(key)
		newValue.Set(value)
		w.walk(newKey, rule)
		if attribute, ok := reflect.TypeAssert[*resourcev1.DeviceAttribute](newValue.Addr()); ok {
			w.device(key.String(), attribute)
		} else {
			w.walk(newValue, rule)
		}
		renamed.SetMapIndex(newKey, newValue)
	}
	v.Set(renamed)
}

// fields walks a structure: those with a meaning of their own as that says, all others field by field.
func (w *walker) fields(v reflect.Value) {
	switch o := v.Addr().Interface().(type) {
	case *metav1.Time, *metav1.MicroTime, *metav1.Duration, *resource.Quantity:
	case *runtime.RawExtension:
		o.Raw, o.Object = nil, nil
	case *intstr.IntOrString:
		if o.Type == intstr.String && !strings.HasSuffix(o.StrVal, "%") {
			o.StrVal = dictated(w, o.StrVal)
		}
	case *metav1.ObjectMeta:
		o.Name = dictated(w, o.Name)
		w.metadata(v)
	case *corev1.Taint:
		o.Key, o.Value = keyed(w, o.Key), w.valueOf(o.Key, o.Value)
	case *corev1.Toleration:
		w.comparing(o.Key, string(o.Operator))
		o.Key, o.Value = keyed(w, o.Key), w.valueOf(o.Key, o.Value)
	case *corev1.NodeSelectorRequirement:
		w.comparing(o.Key, string(o.Operator))
		o.Key, o.Values = keyed(w, o.Key), w.valuesOf(o.Key, o.Values)
	case *metav1.LabelSelectorRequirement:
		o.Key, o.Values = keyed(w, o.Key), w.valuesOf(o.Key, o.Values)
	case *corev1.TopologySelectorLabelRequirement:
		o.Key, o.Values = keyed(w, o.Key), w.valuesOf(o.Key, o.Values)
	default:
		for field, value := range v.Fields() {
			switch {
			case !field.IsExported():
			case isLabels(field):
				w.labels(value)
			default:
				w.walk(value, ruleOf(v.Type(), field.Name))
			}
		}
	}
}

// comparing notes the keys whose values are compared as numbers, which then are preserved.
func (w *walker) comparing(key, operator string) {
	if operator == string(corev1.NodeSelectorOpGt) || operator == string(corev1.NodeSelectorOpLt) {
		w.compare(key)
	}
}

// device renames an attribute's text; versions, numbers and booleans are retained.
func (w *walker) device(name string, attribute *resourcev1.DeviceAttribute) {
	if attribute.StringValue != nil && !word(*attribute.StringValue) {
		attribute.StringValue = new(w.attribute(name, *attribute.StringValue))
	}
	for i, s := range attribute.StringValues {
		if !word(s) {
			attribute.StringValues[i] = w.attribute(name, s)
		}
	}
}
