package movein

// podGroupLabel is the label by which pods name a PodGroup of scheduler-plugins.
const podGroupLabel = groupCoscheduling + "/pod-group"

// coschedulingRule returns the rule for a label or annotation of scheduler-plugins.
func coschedulingRule(key string) rule {
	if key == podGroupLabel {
		return named
	}
	return notRead("nothing in Lockstep reads it")
}

// coscheduling changes objects of scheduler-plugins' own kinds.
func (p *page) coscheduling() {
	switch of := typeOf(p.object); of {
	case typed{groupCoscheduling, "v1alpha1", kindPodGroup}:
		p.keys()
		p.podGroupSize("scheduler-plugins", 0)
		spec := at("spec")
		if p.has(spec.child("minResources")) {
			p.note(unread, spec.child("minResources"), "Lockstep plans the whole gang, and needs no sum")
		}
		if p.has(spec.child("scheduleTimeoutSeconds")) {
			p.note(
				unread,
				spec.child("scheduleTimeoutSeconds"),
				"a gang that does not fit waits without holding anything",
			)
		}
		p.unreadFields(
			spec,
			[]string{"minMember", "minResources", "scheduleTimeoutSeconds"},
			"nothing in Lockstep reads it",
		)
	case typed{groupCoscheduling, "v1alpha1", "ElasticQuota"}:
		p.note(unread, at("kind"), "Lockstep has no quotas; they can be a ClusterQueue of Kueue")
		p.unreadFields(at("spec"), nil, "Kueue has quotas in its ClusterQueue")
	default:
		p.unsupported(of, "PodGroup and ElasticQuota (v1alpha1)")
	}
}
