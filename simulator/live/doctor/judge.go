package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/lockstep-project/lockstep/manifests/probe"
)

// State is the severity of a finding.
type State string

const (
	// OK needs nothing.
	OK State = "ok"
	// Note is information, or a setting to make.
	Note State = "note"
	// Wrong prevents Lockstep from working.
	Wrong State = "wrong"
)

// Finding is the result of one check.
type Finding struct {
	Check string `json:"check"`
	State State  `json:"state"`
	// Found is the observed state, Mend the way to mend it; empty for nothing.
	Found string `json:"found"`
	Mend  string `json:"mend,omitempty"`
}

// oldest is the first release in which pods sleep before they stop and devices are stable.
const oldest = "1.34"

// Judge returns the findings about a cluster, in the order of the checks. schema is the sum of the CRDs of this
// release.
func Judge(facts Facts, schema string) []Finding {
	return []Finding{
		judgeVersion(facts),
		judgeGangs(facts),
		judgeJobSet(facts),
		judgeTrainer(facts, schema),
		judgeKueue(facts),
		judgeLevels(
			facts,
		),
		judgeAccelerators(facts),
		judgeDevices(facts),
		judgeRights(facts),
		judgeLockstep(facts),
		judgeWebhooks(facts),
	}
}

func judgeVersion(facts Facts) Finding {
	finding := Finding{Check: "kubernetes", State: OK, Found: facts.Version}
	version, err := utilversion.ParseGeneric(facts.Version)
	if err != nil || version.LessThan(utilversion.MustParseGeneric(oldest)) {
		finding.State, finding.Mend = Wrong, "Lockstep needs Kubernetes "+oldest+" or later"
	}
	return finding
}

func judgeGangs(facts Facts) Finding {
	mode := facts.Offer.Mode
	if facts.Unserved {
		mode = probe.Resources
	}
	finding := Finding{Check: "gangs", State: OK, Found: "mode " + string(mode)}
	switch {
	case facts.Untried:
		finding.State, finding.Found = Note, "you may not try which: that is a PodGroup in namespace default, created as a dry run"
		finding.Mend = "ask an administrator of the cluster"
	case facts.Unserved:
		finding.Found += ": custom resources, whose CRD the chart brings; no feature gate is needed"
	case mode == probe.Resources:
		finding.Found += ": custom resources; no feature gate is needed"
	case mode == probe.Full:
		finding.Found += ": PodGroups of Kubernetes, with topology and shared claims"
	case mode == probe.Groups:
		finding.Found += ": PodGroups of Kubernetes"
		finding.State, finding.Mend = Note, facts.Offer.Missing()
	}
	return finding
}

func judgeJobSet(facts Facts) Finding {
	switch {
	case len(facts.JobSet.Deployments) > 0 && !facts.Lockstep.has(facts.JobSet.Deployments[0].Namespace):
		return Finding{"jobset", Note, names(facts.JobSet), "install with jobset.install=false"}
	case len(facts.JobSet.Deployments) > 0:
		return Finding{Check: "jobset", State: OK, Found: names(facts.JobSet)}
	case facts.JobSet.Served:
		return Finding{
			"jobset",
			Note,
			"its kinds are served, and no controller is found",
			"see whether one runs under another name; if so, jobset.install=false",
		}
	}
	return Finding{Check: "jobset", State: OK, Found: "none: the chart brings it"}
}

func judgeTrainer(facts Facts, schema string) Finding {
	const choices = "takeOver=NAMESPACE takes over from it, manage=chosen works beside it (docs/takeover.md)"
	switch {
	case len(facts.Trainer.Deployments) > 0:
		return Finding{"trainer", Note, "Kubeflow Trainer runs: " + names(facts.Trainer), choices}
	case facts.TrainerCRDs == "kubeflow":
		return Finding{
			"trainer",
			Note,
			"CRDs of Kubeflow Trainer, and no controller is found",
			"an installation brings Lockstep's CRDs, which have its fields",
		}
	case facts.TrainerCRDs == "":
		return Finding{Check: "trainer", State: OK, Found: "none"}
	case facts.TrainerCRDs != schema:
		return Finding{
			"trainer",
			Note,
			"CRDs of another release of Lockstep",
			"helm upgrade brings them up to date, or lockstep crds --apply",
		}
	}
	return Finding{Check: "trainer", State: OK, Found: "CRDs of this release of Lockstep"}
}

func judgeKueue(facts Facts) Finding {
	if len(facts.Kueue.Deployments) == 0 {
		return Finding{Check: "kueue", State: OK, Found: "none"}
	}
	return Finding{Check: "kueue", State: OK, Found: names(facts.Kueue)}
}

func judgeLevels(facts Facts) Finding {
	if len(facts.Levels) == 0 {
		return Finding{
			"levels",
			Note,
			fmt.Sprintf("no label of a known family on %d nodes: every node is as near as any other", facts.Nodes),
			"label the nodes, or name your labels in scheduler.pluginArgs.GangPlacement.levels",
		}
	}
	return Finding{
		Check: "levels",
		State: OK,
		Found: strings.Join(facts.Levels, ", ") + fmt.Sprintf(" on %d nodes", facts.Nodes),
	}
}

func judgeAccelerators(facts Facts) Finding {
	if len(facts.Accelerators) == 0 {
		return Finding{
			"accelerators", Note, "none as extended resources",
			"where they have another name: scheduler.pluginArgs.GangPlacement.accelerators",
		}
	}
	var counts []string
	for _, name := range slices.Sorted(maps.Keys(facts.Accelerators)) {
		counts = append(counts, fmt.Sprintf("%d %s", facts.Accelerators[name], name))
	}
	return Finding{Check: "accelerators", State: OK, Found: strings.Join(counts, ", ")}
}

func judgeDevices(facts Facts) Finding {
	finding := Finding{Check: "devices", State: OK, Found: "no DRA driver"}
	if len(facts.Drivers) > 0 {
		finding.Found = "DRA drivers " + strings.Join(facts.Drivers, ", ")
	}
	if facts.Offer.ComputeDomains {
		finding.Found += "; ComputeDomains connect nodes by NVLink"
	}
	return finding
}

func judgeRights(facts Facts) Finding {
	if len(facts.Denied) == 0 {
		return Finding{Check: "rights", State: OK, Found: "you may install"}
	}
	return Finding{
		"rights",
		Wrong,
		"you may not " + strings.Join(facts.Denied, ", "),
		"install as an administrator of the cluster",
	}
}

func judgeLockstep(facts Facts) Finding {
	if len(facts.Lockstep.Deployments) == 0 {
		return Finding{Check: "lockstep", State: OK, Found: "not installed"}
	}
	finding := Finding{Check: "lockstep", State: OK, Found: names(facts.Lockstep)}
	for _, of := range facts.Lockstep.Deployments {
		if of.Ready < of.Wanted {
			finding.State = Wrong
			finding.Mend = fmt.Sprintf(
				"%d of %d pods of %s are ready: kubectl -n %s describe pods",
				of.Ready,
				of.Wanted,
				of.Name,
				of.Namespace,
			)
		}
	}
	return finding
}

func judgeWebhooks(facts Facts) Finding {
	finding := Finding{Check: "webhooks", State: OK, Found: "they answer"}
	switch webhook := facts.Webhook; {
	case !webhook.Tried:
		finding.Found = "not tried: lockstep-controller is not installed"
	case webhook.Refused:
	case webhook.Error == "":
		finding.State, finding.Found = Note, "not asked about TrainJobs in namespace default"
		finding.Mend = "right with manage=chosen, or with namespaces that do not have it"
	default:
		finding.State, finding.Found = Wrong, "a TrainJob cannot be created: "+webhook.Error
		finding.Mend = "the API server must reach the controller's pods at port 9443, or manager.config.webhook.port: " +
			"look at firewalls, NetworkPolicies and the controller's log"
	}
	return finding
}

// has reports whether a project has a Deployment in a namespace.
func (p Project) has(namespace string) bool {
	return slices.ContainsFunc(p.Deployments, func(d Deployment) bool { return d.Namespace == namespace })
}

func names(of Project) string {
	texts := make([]string, len(of.Deployments))
	for i, deployment := range of.Deployments {
		texts[i] = deployment.String()
	}
	return strings.Join(texts, ", ")
}
