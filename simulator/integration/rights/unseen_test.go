package rights_test

// row names the code that uses rights that no integration test was seen to use.
type row struct {
	// role is kind and name, and resources are those of its rules; empty for all.
	role, verbs, resources string
	// with is a verb that the role has for the same resource, and that was seen.
	with string
	// why no test is seen to use it.
	why string
	// file is in this repository, or in a module (module:file), and contains code.
	file, code string
}

func unseen() []row {
	const controller = "ClusterRole lockstep-controller"
	rows := []row{
		{
			verbs: "list", with: "watch", why: "caches list where the API server does not stream a list within a watch",
			file: "k8s.io/client-go:tools/cache/reflector.go", code: "if fallbackToList {",
		},
		{
			role: controller, verbs: "get", resources: "trainer.kubeflow.org/trainingruntimes",
			why:  "a runtime that is younger than the cache",
			file: "controller/resolve/resolve.go", code: "err = r.live.Get(ctx, ref.Key, into)",
		},
		{
			role: controller, verbs: "delete", resources: "trainer.kubeflow.org/trainjobs",
			why:  "no test waits for ttlSecondsAfterFinished, which unit tests do with a clock of their own",
			file: "controller/trainjob/expiry.go", code: "r.erase(ctx, job)",
		},
		{
			role:      controller,
			verbs:     "update",
			resources: "trainer.kubeflow.org/trainjobs/finalizers",
			why:       "admission plugin OwnerReferencesPermissionEnforcement, which is off by default, asks this of who sets blockOwnerDeletion",
			file:      "controller/plan/render.go",
			code:      "metav1.NewControllerRef(job, TrainJobKind())",
		},
		{
			role: controller, verbs: "write", resources: "lockstep.dev/runtimesnapshots",
			why:  "a policy of the first release asks for it until somebody deletes that",
			file: "docs/trust.md", code: "runtimesnapshots.lockstep.dev",
		},
		{
			role: "ClusterRole lockstep-metrics-reader", verbs: "get", resources: "/metrics",
			why:  "it is for requests to the controller, which asks the API server about them",
			file: "controller/metrics.go", code: "settings.FilterProvider = authenticateScrapers",
		},
		{
			role:      "ClusterRole kubeflow-trainer-cache-initializer",
			verbs:     "update",
			resources: "trainer.kubeflow.org/trainjobs/finalizers",
			why:       "as for the controller: the initializer's owner references block deletion",
			file:      "manifests/chart/runtimes/torch-distributed-with-cache.yaml",
			code:      "kubeflow-trainer-cache-initializer",
		},
	}
	rows = append(rows, foreignGroups(controller)...)
	rows = append(rows, takeOver(controller)...)
	rows = append(rows, startOfTheController(controller)...)
	rows = append(rows, move(controller)...)
	rows = append(rows, leases("Role lockstep-controller-leader-election", "one replica runs here")...)
	rows = append(rows, demand("ClusterRole lockstep-scheduler")...)
	return append(rows, schedulers()...)
}

// foreignGroups are for gang schedulers that are not installed here.
func foreignGroups(role string) []row {
	const groups = "scheduling.x-k8s.io/podgroups scheduling.volcano.sh/podgroups"
	return []row{
		{
			role: role, verbs: "get", resources: groups, why: "their kinds are not served here",
			file: "controller/trainjob/foreign.go", code: "r.Live.Get(ctx, client.ObjectKeyFromObject(job), found)",
		},
		{
			role:      role,
			verbs:     "create patch",
			resources: groups,
			why:       "as above; applying what does not exist needs both",
			file:      "controller/trainjob/apply.go",
			code:      "r.Client.Apply(ctx",
		},
		{
			role: role, verbs: "delete", resources: groups, why: "as above",
			file: "controller/trainjob/release.go", code: "r.removeForeign(ctx, job, jobSet)",
		},
	}
}

// takeOver returns the rights that make test-full uses, beside Kubeflow Trainer's own manager.
func takeOver(role string) []row {
	const lessee = "Role lockstep-controller-take-over"
	return append(
		leases(lessee, "the suite has no Kubeflow Trainer beside it"),
		row{
			role: lessee, verbs: "create", resources: "coordination.k8s.io/leases", why: "as above",
			file: "k8s.io/client-go:tools/leaderelection/resourcelock/leaselock.go",
			code: "Leases(ll.LeaseMeta.Namespace).Create(",
		},
		row{
			role: role, verbs: "get", resources: "/namespaces", why: "as above",
			file: "controller/admission/choice.go",
			code: "d.Live.Get(ctx, client.ObjectKey{Name: job.Namespace}, namespace)",
		},
	)
}

// move returns the rights for a change of the API of a cluster's gangs, which package moving tests.
func move(role string) []row {
	const scheduler, groups = "ClusterRole lockstep-scheduler", "scheduling.k8s.io/podgroups scheduling.lockstep.dev/podgroups"
	return []row{
		{
			role: scheduler, verbs: "write", resources: "lockstep.dev/gangpriorities",
			why:  "a policy asks for it, and the API server does not log what policies ask",
			file: "manifests/chart/templates/policies/gangs.yaml", code: "resource('gangpriorities').check('write')",
		},
		{
			role: scheduler, verbs: "write", resources: "lockstep.dev/gangtimes", why: "as above",
			file: "manifests/chart/templates/policies/gangs.yaml", code: "resource('gangtimes').check('write')",
		},
		{
			role:      role,
			verbs:     "update",
			resources: "scheduling.k8s.io/podgroups/status scheduling.lockstep.dev/podgroups/status",
			why:       "no gang is moved in the suite",
			file:      "controller/moving/moving.go",
			code:      "groups.UpdateStatus(ctx, have",
		},
		{
			role:      scheduler,
			verbs:     "patch",
			resources: groups,
			why:       "as above: native groups that were moved have our finalizer",
			file:      "scheduler/podgroups/keeper.go",
			code:      "Patch(ctx, group.Name, types.JSONPatchType, patch",
		},
		{
			role:      scheduler,
			verbs:     "get",
			resources: groups,
			why:       "a status that was written by somebody else meanwhile is read",
			file:      "manifests/gangapi/podgroups.go",
			code:      "base, err := g.merging.Get(ctx, name, metav1.GetOptions{})",
		},
		{
			verbs: "update", resources: "/configmaps", why: "as above: the choice of the API changes",
			file: "manifests/gangapi/choice.go", code: "maps.Update(ctx, found, metav1.UpdateOptions{})",
		},
	}
}

// leases are the rights of a leader election that the suite does without. Creation is not among them: the controller
// creates a lease in its own namespace by the dry runs of its start.
func leases(role, why string) []row {
	const resources, lock = "coordination.k8s.io/leases", "k8s.io/client-go:tools/leaderelection/resourcelock/leaselock.go"
	return []row{
		{
			role: role, verbs: "get", resources: resources, why: why,
			file: lock, code: "Leases(ll.LeaseMeta.Namespace).Get(",
		},
		{
			role: role, verbs: "update", resources: resources, why: why,
			file: lock, code: "Leases(ll.LeaseMeta.Namespace).Update(",
		},
	}
}

// startOfTheController returns the rights for parts that the embedded cluster runs without: a leader, and a certificate
// of its own.
func startOfTheController(role string) []row {
	return []row{
		{
			role:      role,
			verbs:     "get",
			why:       "the cluster's certificate is used here",
			resources: "admissionregistration.k8s.io/mutatingwebhookconfigurations admissionregistration.k8s.io/validatingwebhookconfigurations",
			file:      "controller/certificate/publish.go",
			code:      "k.Client.Get(ctx, client.ObjectKey{Name: name}, configuration)",
		},
		{
			role:      role,
			verbs:     "patch",
			why:       "as above",
			resources: "admissionregistration.k8s.io/mutatingwebhookconfigurations admissionregistration.k8s.io/validatingwebhookconfigurations",
			file:      "controller/certificate/publish.go",
			code:      "k.Client.Patch(ctx, configuration",
		},
		{
			role: "Role lockstep-controller-webhook-certificate", verbs: "get", resources: "/secrets", why: "as above",
			file: "controller/certificate/keeper.go", code: "k.Client.Get(ctx, k.Secret, secret)",
		},
		{
			role:      "Role lockstep-controller-webhook-certificate",
			verbs:     "create",
			resources: "/secrets",
			why:       "as above",
			file:      "controller/certificate/keeper.go",
			code:      "k.Client.Create(ctx, secret",
		},
		{
			role:      "Role lockstep-controller-webhook-certificate",
			verbs:     "update",
			resources: "/secrets",
			why:       "as above",
			file:      "controller/certificate/keeper.go",
			code:      "k.Client.Update(ctx, secret",
		},
		{
			role:      "Role lockstep-controller-leader-election",
			verbs:     "create",
			resources: "/events",
			why:       "one replica runs here",
			file:      "sigs.k8s.io/controller-runtime:pkg/leaderelection/leader_election.go",
			code:      "GetEventRecorderFor(id)",
		},
	}
}

// schedulers are rights that kube-scheduler's own code uses. demand returns those that
// simulator/integration/coexistence uses, with a scheduler that is configured so.
func demand(scheduler string) []row {
	const file, why = "scheduler/demand/cluster.go", "node autoscalers are told of gangs on another cluster"
	return []row{
		{
			role: scheduler, verbs: "create", resources: "autoscaling.x-k8s.io/provisioningrequests", why: why,
			file: file, code: "c.Dynamic.Resource(resource).Namespace(group.Namespace).Create(",
		},
		{
			role: scheduler, verbs: "delete", resources: "autoscaling.x-k8s.io/provisioningrequests", why: why,
			file: file, code: "c.Dynamic.Resource(resource).Namespace(request.GetNamespace()).Delete(",
		},
		{
			role: scheduler, verbs: "list watch", resources: "autoscaling.x-k8s.io/provisioningrequests", why: why,
			file: file, code: "dynamicinformer.NewFilteredDynamicInformer(c.Dynamic",
		},
		{
			role: scheduler, verbs: "create", resources: "/podtemplates", why: why,
			file: file, code: "PodTemplates(group.Namespace).Create(",
		},
		{
			role: scheduler, verbs: "delete", resources: "/podtemplates", why: why,
			file: file, code: "PodTemplates(request.GetNamespace()).Delete(",
		},
	}
}

func schedulers() []row {
	const (
		role    = "ClusterRole lockstep-scheduler"
		narrow  = "Role lockstep-scheduler"
		plugins = "k8s.io/kubernetes:pkg/scheduler/framework/plugins/"
		options = "k8s.io/kubernetes:cmd/kube-scheduler/app/options/options.go"
	)
	return []row{
		{
			role: "Role lockstep-scheduler", verbs: "create", resources: "/configmaps",
			why:  "the chart brings them; if one is deleted, it is made anew",
			file: "scheduler/statemap/statemap.go", code: "maps.Create(ctx, object, metav1.CreateOptions{})",
		},
		{
			role: "Role lockstep-scheduler", verbs: "get update", resources: "/configmaps",
			why:  "the recorded schedulers learned no run times",
			file: "scheduler/gangplacement/plugin.go", code: "at.Name = runTimesName",
		},
		{
			role:      "Role lockstep-scheduler",
			verbs:     "create",
			resources: "coordination.k8s.io/leases",
			why:       "the chart brings the lease; if somebody deletes it, it is made anew",
			file:      "k8s.io/client-go:tools/leaderelection/resourcelock/leaselock.go",
			code:      "Leases(ll.LeaseMeta.Namespace).Create(",
		},
		{
			role:      role,
			verbs:     "list watch",
			resources: "/services /replicationcontrollers apps/replicasets apps/statefulsets",
			why:       "the shipped profile has defaultingType List; without the right a profile with System would never start",
			file:      plugins + "podtopologyspread/plugin.go",
			code:      "pl.setListers(h.SharedInformerFactory())",
		},
		{
			role: role, verbs: "update", resources: "/persistentvolumes", why: "no test binds a volume late",
			file: plugins + "volumebinding/binder.go", code: "PersistentVolumes().Update(",
		},
		{
			role: role, verbs: "update", resources: "/persistentvolumeclaims", why: "as above",
			file: plugins + "volumebinding/binder.go", code: "PersistentVolumeClaims(claim.Namespace).Update(",
		},
		{
			role:      role,
			verbs:     "create",
			resources: "resource.k8s.io/resourceclaims",
			why:       "no test asks for an extended resource that a class backs",
			file:      plugins + "dynamicresources/extendeddynamicresources.go",
			code:      "ResourceClaims(claim.Namespace).Create(",
		},
		{
			role:      role,
			verbs:     "delete",
			resources: "resource.k8s.io/resourceclaims",
			why:       "as above",
			file:      plugins + "dynamicresources/extendeddynamicresources.go",
			code:      "ResourceClaims(claim.Namespace).Delete(",
		},
		{
			role:      role,
			verbs:     "update",
			resources: "/pods/finalizers",
			why:       "as above: the claim's owner reference to its pod blocks deletion",
			file:      plugins + "dynamicresources/extendeddynamicresources.go",
			code:      "OwnerReferences: []metav1.OwnerReference{",
		},
		{
			role:      role,
			verbs:     "patch",
			resources: "resource.k8s.io/resourceclaims/status",
			why:       "a reservation is given up only when a pod fails late",
			file:      plugins + "dynamicresources/dynamicresources.go",
			code:      `[]byte(patch), metav1.PatchOptions{}, "status")`,
		},
		{
			role: role, verbs: "patch update", resources: "resource.k8s.io/resourceclaims/binding",
			why:  "the API server asks itself about it, with the verb of a write of the claim's status",
			file: "k8s.io/kubernetes:pkg/registry/resource/utils.go", code: "resourceclaims/binding",
		},
		{
			role:      role,
			verbs:     "create",
			resources: "authentication.k8s.io/tokenreviews",
			why:       "nobody reads the scheduler's metrics here",
			file:      options,
			code:      "NewDelegatingAuthenticationOptions()",
		},
		{
			role: role, verbs: "create", resources: "authorization.k8s.io/subjectaccessreviews", why: "as above",
			file: options, code: "NewDelegatingAuthorizationOptions()",
		},
		{
			role:      role,
			verbs:     "get",
			resources: "/pods",
			why:       "no answer to a binding is lost here, and no gang seems incomplete",
			file:      "scheduler/gangpermit/bind.go",
			code:      "Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})",
		},
	}
}
