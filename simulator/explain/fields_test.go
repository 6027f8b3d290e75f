package explain_test

import (
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/simulator/explain"
)

var writeFields = flag.Bool("write-fields", false, "write the list of the answer's fields")

// Agents and scripts read the answer's fields by name. A field may be added, with a line in the file; one that is
// renamed or has another type breaks them.
func TestAnswer_FieldsAreStable(t *testing.T) {
	fields := map[string]string{}
	collect(reflect.TypeFor[explain.Answer](), "", fields, nil)
	var lines []string
	for path, kind := range fields {
		lines = append(lines, path+" "+kind)
	}
	slices.Sort(lines)
	file, got := "fields.txt", strings.Join(lines, "\n")+"\n"
	if *writeFields {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf(
			"the fields of lockstep explain -o json (-want +got); go test ./simulator/explain -args -write-fields:\n%s",
			diff,
		)
	}
}

// collect notes the fields of a type below a path, as JSON has them. above are the types around it: those that hold
// themselves are named once.
func collect(of reflect.Type, path string, into map[string]string, above []reflect.Type) {
	switch {
	case of.Kind() == reflect.Pointer:
		collect(of.Elem(), path, into, above)
	case of == reflect.TypeFor[time.Time]():
		into[path] = "instant"
	case of.Kind() == reflect.Slice:
		collect(of.Elem(), path+"[]", into, above)
	case of.Kind() == reflect.Map:
		collect(of.Elem(), path+"{}", into, above)
	case of.Kind() != reflect.Struct:
		into[path] = of.Kind().String()
	case slices.Contains(above, of):
		into[path] = "as above"
	default:
		for field := range of.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if options == "omitempty" {
				name += "?"
			}
			collect(field.Type, strings.TrimPrefix(path+"."+name, "."), into, append(slices.Clone(above), of))
		}
	}
}
