package servedkinds_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-project/lockstep/controller/servedkinds"
)

var errDiscovery = errors.New("the server is currently unable to handle the request")

// answers holds the API server's errors, by version.
type answers map[string]error

func (a answers) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{}, a[version]
}

func TestMissing(t *testing.T) {
	set := schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}
	absent := answers{"leaderworkerset.x-k8s.io/v1": apierrors.NewNotFound(schema.GroupResource{}, "")}
	for name, c := range map[string]struct {
		discovery servedkinds.Discovery
		kinds     []schema.GroupVersionKind
		says      string
	}{
		"served":                   {answers{}, []schema.GroupVersionKind{set}, ""},
		"not served":               {absent, []schema.GroupVersionKind{set}, "LeaderWorkerSet of leaderworkerset.x-k8s.io/v1 is not served"},
		"nothing is created":       {absent, nil, ""},
		"the API server is unable": {answers{"leaderworkerset.x-k8s.io/v1": errDiscovery}, []schema.GroupVersionKind{set}, ""},
		"nothing can be asked":     {nil, []schema.GroupVersionKind{set}, ""},
	} {
		found := strings.Join(servedkinds.Kinds{Discovery: c.discovery}.Missing(c.kinds), "\n")
		if (found == "") != (c.says == "") || !strings.Contains(found, c.says) {
			t.Errorf("%s: %q, want %q", name, found, c.says)
		}
	}
}
