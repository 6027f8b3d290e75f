package resolve_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/resolve"
)

// A job that an earlier version rendered continues with the copy of its runtime that this version made.
func TestFind_AdoptsTheCopyOfAController(t *testing.T) {
	reads := cluster(t, torch(2), jobSet(), copied(t, torch(7)))
	found, err := resolve.New(reads, reads, system).Find(t.Context(), job())
	if err != nil {
		t.Fatal(err)
	}
	if nodes(t, found) != 7 || !found.Adopted || found.Decisions == nil || found.Live == nil ||
		found.Disbelieved != "" {
		t.Errorf("found %+v", found)
	}
}

// A tenant may write ConfigMaps in his namespace. Each of these has a runtime of his, and none is used.
func TestFind_DisbelievesCopiesOfTenants(t *testing.T) {
	for name, c := range map[string]struct {
		forge func(*corev1.ConfigMap)
		says  string
	}{
		"without an owner": {func(c *corev1.ConfigMap) { c.OwnerReferences = nil }, "belongs to another object"},
		"of an earlier job of the name": {
			func(c *corev1.ConfigMap) { c.OwnerReferences[0].UID = "earlier-uid" }, "belongs to another object",
		},
		"owned, but not by the controller": {
			func(c *corev1.ConfigMap) { c.OwnerReferences[0].Controller = nil }, "belongs to another object",
		},
		"mutable, as Kubeflow Trainer's": {func(c *corev1.ConfigMap) { c.Immutable = nil }, "can be changed"},
		"younger than the JobSet": {
			func(c *corev1.ConfigMap) { c.CreationTimestamp = metav1.NewTime(made().Add(time.Second)) }, "younger",
		},
		"empty":              {func(c *corev1.ConfigMap) { c.Data = nil }, "no key"},
		"no runtime":         {func(c *corev1.ConfigMap) { c.Data["runtime"] = "kind: Secret\nmetadata: {name: torch}" }, "Secret torch"},
		"of another runtime": {func(c *corev1.ConfigMap) { c.Data["runtime"] = strings.Replace(c.Data["runtime"], "torch", "evil", 1) }, "evil"},
	} {
		t.Run(name, func(t *testing.T) {
			forged := copied(t, torch(7))
			c.forge(forged)
			reads := cluster(t, torch(2), jobSet(), forged)
			found, err := resolve.New(reads, reads, system).Find(t.Context(), job())
			if err != nil {
				t.Fatal(err)
			}
			if nodes(t, found) != 2 || !found.Adopted || !strings.Contains(found.Disbelieved, c.says) {
				t.Errorf("found %+v, want the cluster's runtime since the copy %s", found, c.says)
			}
		})
	}
}

// Without a JobSet of the job's own there is nothing to continue, and no copy is read.
func TestFind_CopyAloneIsNoJob(t *testing.T) {
	foreign := jobSet()
	foreign.OwnerReferences = nil
	for name, set := range map[string]*jobsetv1alpha2.JobSet{"none": nil, "another's": foreign} {
		reads := cluster(t, torch(2), copied(t, torch(7)))
		if set != nil {
			reads = cluster(t, torch(2), copied(t, torch(7)), set)
		}
		found, err := resolve.New(reads, reads, system).Find(t.Context(), job())
		if err != nil {
			t.Fatal(err)
		}
		if nodes(t, found) != 2 || found.Adopted {
			t.Errorf("JobSet %s: found %+v", name, found)
		}
	}
}

// A JobSet that waits, beside no copy that is believed, shows nothing of how this version would render the job.
func TestFind_DecisionsOfAnotherController(t *testing.T) {
	for suspended, decided := range map[bool]bool{true: false, false: true} {
		set := jobSet()
		set.Spec.Suspend = &suspended
		reads := cluster(t, torch(2), set)
		found, err := resolve.New(reads, reads, system).Find(t.Context(), job())
		if err != nil {
			t.Fatal(err)
		}
		if got := found.Decisions != nil; got != decided || !found.Adopted {
			t.Errorf("suspended %t: decisions %t, want %t", suspended, got, decided)
		}
	}
}
