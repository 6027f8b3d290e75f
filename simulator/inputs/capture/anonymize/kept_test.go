package anonymize_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture/anonymize"
)

var rewrite = flag.Bool("rewrite", false, "write what came out over what was wanted")

const hush = "hush"

// Every text of every field of every kind is filled with a secret. The fields that retain it are in testdata/kept.txt,
// by field or by type. A new line there (a new release of Kubernetes may need one) requires the statement that users
// cannot write texts of their own there, or that placement cannot do without it.
func TestRename_RetainsListedFieldsOnly(t *testing.T) {
	kept := map[string]bool{}
	for list := range reflect.TypeFor[capture.Snapshot]().Fields() {
		if list.Type.Kind() != reflect.Slice || list.Type.Elem().Kind() != reflect.Pointer {
			continue
		}
		object := reflect.New(list.Type.Elem().Elem())
		f := &filler{}
		f.fill(object.Elem(), 0)
		before := object.Elem().FieldByName("Name").String()
		twin := reflect.New(list.Type.Elem().Elem())
		(&filler{}).fill(twin.Elem(), 0)
		census := anonymize.NewCensus()
		census.Add(twin.Interface())
		census.Names().Rename(object.Interface())
		if after := object.Elem().FieldByName("Name").String(); after == before || after == "" {
			t.Errorf("the name of a %s is %q", list.Type.Elem().Elem(), after)
		}
		remaining(object.Elem(), object.Elem().Type().String(), kept)
	}
	lines := make([]string, 0, len(kept))
	for line := range kept {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	got := strings.Join(lines, "\n") + "\n"
	golden := filepath.Join("testdata", "kept.txt")
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// filler fills every text with a secret of its own, every pointer with a value, and every list and map with one entry.
type filler struct{ secrets int }

func (f *filler) fill(v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case metav1.Time, metav1.MicroTime, resource.Quantity, metav1.FieldsV1:
		return
	case intstr.IntOrString:
		v.Set(reflect.ValueOf(intstr.FromString(f.secret())))
		return
	case runtime.RawExtension:
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`"` + f.secret() + `"`)}))
		return
	}
	if depth > 40 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.secret())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.fill(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, depth+1)
		f.fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() && field.Name != "ManagedFields" { // these are not in a snapshot
				f.fill(value, depth+1)
			}
		}
	default:
	}
}

func (f *filler) secret() string {
	f.secrets++
	return fmt.Sprintf("%s%d", hush, f.secrets)
}

// remaining notes the fields, or the types where texts have types of their own, in which a secret is left.
func remaining(v reflect.Value, where string, kept map[string]bool) {
	switch v.Kind() {
	case reflect.String:
		if strings.Contains(v.String(), hush) {
			if v.Type() != reflect.TypeFor[string]() {
				where = v.Type().String()
			}
			kept[where] = true
		}
	case reflect.Pointer:
		if !v.IsNil() {
			remaining(v.Elem(), where, kept)
		}
	case reflect.Slice:
		for i := range v.Len() {
			remaining(v.Index(i), where, kept)
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			remaining(key, where+" (key)", kept)
			remaining(value, where, kept)
		}
	case reflect.Struct:
		for field, value := range v.Fields() {
			if field.IsExported() {
				remaining(value, v.Type().String()+"."+field.Name, kept)
			}
		}
	default:
	}
}
