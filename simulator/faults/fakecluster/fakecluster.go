// Package fakecluster models the parts of a cluster besides Lockstep, as far as jobs need it: the Job controller, kubelets,
// the life cycle of nodes, the controller of ResourceClaims, and the collectors of garbage. They follow Kubernetes
// 1.37, written from its documentation and its API: the failures that a Job counts and the time at which it creates a
// pod again, the end of a pod whose node is lost, the order in which owners and dependents are deleted.
//
// They act on package apiserver directly, some time after the change to which they react, and their own calls never
// fail: they are not under test.
package fakecluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/simulator/faults/apiserver"
)

// World is the models' view of their driver.
type World struct {
	Server *apiserver.Server
	Now    func() time.Time
	// After has something done later.
	After func(d time.Duration, do func())
	// Delay draws a duration between a tenth of the usual one and twice that. Equal words give equal delays in each
	// run.
	Delay func(usual time.Duration, words ...string) time.Duration
	// NVLink is set if NVIDIA's driver for ComputeDomains is there.
	NVLink bool
	// Log receives the events.
	Log func(format string, args ...any)
}

// Cluster are the models of a cluster.
type Cluster struct {
	World

	jobs     *jobs
	kubelets *kubelets
	garbage  *garbage
	nodes    *nodes
	claims   *claims
	domains  *domains
}

// Start has the models follow the server.
func Start(w World, work Work) *Cluster {
	m := &Cluster{World: w}
	m.jobs = &jobs{
		World: w, due: make(map[types.NamespacedName]bool),
		failures: make(map[types.UID]*streak), indexFailures: make(map[indexed]*streak),
	}
	m.kubelets = newKubelets(w, work)
	m.nodes = &nodes{World: w, kubelets: m.kubelets, lost: make(map[string]int)}
	m.garbage = &garbage{World: w}
	m.claims = &claims{World: w}
	m.domains = &domains{World: w}
	w.Server.Changes(func(e apiserver.Event) {
		m.jobs.changed(e)
		m.kubelets.changed(e)
		m.nodes.changed(e)
		m.garbage.changed(e)
		m.claims.changed(e)
		if w.NVLink {
			m.domains.changed(e)
		}
	})
	return m
}

// must is for calls that fail only if the model is wrong, or if their object is deleted.
func must(err error) {
	if client.IgnoreNotFound(err) != nil {
		panic(err)
	}
}

// noGrace deletes at once.
func noGrace() metav1.DeleteOptions { return metav1.DeleteOptions{GracePeriodSeconds: new(int64)} }

func isTrue(b *bool) bool { return b != nil && *b }
