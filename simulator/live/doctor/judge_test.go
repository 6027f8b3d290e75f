package doctor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/live/doctor"
)

// empty is a cluster in which nothing is installed.
func empty() doctor.Facts {
	return doctor.Facts{
		Version: "v1.34.3", Unserved: true, Nodes: 2, Levels: []string{"zone", "clique"},
		Accelerators: map[string]int64{"nvidia.com/gpu": 8},
	}
}

// Each check reports the state of an empty cluster, and the consequence of each change; no change has another finding.
func TestJudge(t *testing.T) {
	plain := map[string]string{}
	for _, finding := range doctor.Judge(empty(), "abc") {
		plain[finding.Check] = fmt.Sprint(finding)
		if finding.State != doctor.OK || finding.Mend != "" {
			t.Errorf("an empty cluster: %v", finding)
		}
	}
	jobset := doctor.Deployment{
		Namespace: "jobset-system",
		Name:      "jobset-controller-manager",
		Version:   "v0.12.0",
		Ready:     1,
		Wanted:    1,
	}
	ours := doctor.Deployment{
		Namespace: "lockstep-system",
		Name:      "lockstep-controller",
		Version:   "v1.0.0",
		Ready:     2,
		Wanted:    2,
	}
	for _, c := range []struct {
		change func(*doctor.Facts)
		check  string
		state  doctor.State
		says   string
	}{
		{func(f *doctor.Facts) { f.Version = "v1.33.9" }, "kubernetes", doctor.Wrong, "1.34 or later"},
		{func(f *doctor.Facts) { f.Version = "v1.37.2" }, "kubernetes", doctor.OK, "v1.37.2"},
		{func(f *doctor.Facts) { f.Unserved, f.Offer.Mode = false, probe.Full }, "gangs", doctor.OK, "mode full"},
		{func(f *doctor.Facts) {
			f.Unserved, f.Offer = false, probe.Offer{Mode: probe.Groups, Off: []string{"DRAWorkloadResourceClaims"}}
		}, "gangs", doctor.Note, "--feature-gates=DRAWorkloadResourceClaims=true"},
		{func(f *doctor.Facts) { f.Unserved, f.Untried = false, true }, "gangs", doctor.Note, "you may not try"},
		{func(f *doctor.Facts) { f.Webhook.Tried = true }, "webhooks", doctor.Note, "manage=chosen"},
		{func(f *doctor.Facts) { f.JobSet.Deployments = []doctor.Deployment{jobset} }, "jobset", doctor.Note, "jobset.install=false"},
		{func(f *doctor.Facts) { f.JobSet.Served = true }, "jobset", doctor.Note, "no controller is found"},
		{func(f *doctor.Facts) { f.TrainerCRDs = "kubeflow" }, "trainer", doctor.Note, "CRDs of Kubeflow Trainer"},
		{func(f *doctor.Facts) { f.TrainerCRDs = "abc" }, "trainer", doctor.OK, "this release"},
		{func(f *doctor.Facts) { f.TrainerCRDs = "abd" }, "trainer", doctor.Note, "another release"},
		{func(f *doctor.Facts) {
			f.Trainer.Deployments = []doctor.Deployment{{Namespace: "kubeflow-system", Name: "kubeflow-trainer-controller-manager"}}
		}, "trainer", doctor.Note, "takeOver=NAMESPACE"},
		{func(f *doctor.Facts) {
			f.Kueue.Deployments = []doctor.Deployment{{Namespace: "kueue-system", Name: "kueue-controller-manager", Version: "v0.19.0"}}
		}, "kueue", doctor.OK, "v0.19.0"},
		{func(f *doctor.Facts) { f.Levels = nil }, "levels", doctor.Note, "every node is as near"},
		{func(f *doctor.Facts) { f.Accelerators = nil }, "accelerators", doctor.Note, "GangPlacement.accelerators"},
		{func(f *doctor.Facts) { f.Drivers = []string{"gpu.nvidia.com"} }, "devices", doctor.OK, "gpu.nvidia.com"},
		{func(f *doctor.Facts) { f.Denied = []string{"create namespaces"} }, "rights", doctor.Wrong, "you may not create namespaces"},
	} {
		facts := empty()
		c.change(&facts)
		for _, finding := range doctor.Judge(facts, "abc") {
			switch {
			case finding.Check != c.check:
				if got := fmt.Sprint(finding); got != plain[finding.Check] {
					t.Errorf("%s %q: also %s", c.check, c.says, got)
				}
			case finding.State != c.state || !strings.Contains(finding.Found+" "+finding.Mend, c.says):
				t.Errorf("%s: %v, want %s and %q", c.check, finding, c.state, c.says)
			}
		}
	}
	facts := empty()
	facts.Lockstep.Deployments, facts.JobSet.Deployments = []doctor.Deployment{
		ours,
	}, []doctor.Deployment{
		{Namespace: "lockstep-system", Name: "jobset-controller"},
	}
	for _, finding := range doctor.Judge(facts, "abc") {
		if finding.State != doctor.OK {
			t.Errorf("an installation that works: %v", finding)
		}
	}
	facts.Lockstep.Deployments[0].Ready, facts.Webhook = 1, doctor.Webhook{Tried: true, Error: "no route to host"}
	for _, finding := range doctor.Judge(facts, "abc") {
		if wrong := finding.Check == "lockstep" ||
			finding.Check == "webhooks"; wrong != (finding.State == doctor.Wrong) {
			t.Errorf("an installation that does not: %v", finding)
		}
	}
}
