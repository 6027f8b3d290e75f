// Package stage is what a cluster has besides Lockstep, as far as jobs need it: the Job controller, kubelets, the life cycle of nodes, the
// controller of ResourceClaims, and the collectors of garbage. They are models of what Kubernetes 1.37 does, written from its documentation and its API: what a Job counts as a failure and
// when it makes a pod again, what becomes of a pod whose node is lost, in which order owners and dependents go.
//
// They act on package apiserver directly, some time after what they act upon, and their own calls never fail: it is not they who are tried.
package stage

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/simulator/faults/apiserver"
)

// World is what models need of who drives them.
type World struct {
	Server *apiserver.Server
	Now    func() time.Time
	// After has something done later.
	After func(d time.Duration, do func())
	// Delay draws how long something takes, between a tenth of the usual duration and twice that. Equal words give equal delays in each run.
	Delay func(usual time.Duration, words ...string) time.Duration
	// NVLink says that NVIDIA's driver for ComputeDomains is there.
	NVLink bool
	// Log notes what happened.
	Log func(format string, args ...any)
}

// Stage are the models of a cluster.
type Stage struct {
	World

	jobs     *jobs
	kubelets *kubelets
	garbage  *garbage
	nodes    *nodes
	claims   *claims
	domains  *domains
}

// Start has the models follow the server.
func Start(w World, work Work) *Stage {
	m := &Stage{World: w}
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

// must is for calls that fail only if the model is wrong, or if what they are about is gone.
func must(err error) {
	if client.IgnoreNotFound(err) != nil {
		panic(err)
	}
}

// noGrace deletes at once.
func noGrace() metav1.DeleteOptions { return metav1.DeleteOptions{GracePeriodSeconds: new(int64)} }

func isTrue(b *bool) bool { return b != nil && *b }
