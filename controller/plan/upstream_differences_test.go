package plan_test

import "slices"

// intendedDifferences are all differences from upstream that are meant; controller/DECISIONS.md has them in one table.
func intendedDifferences() []intended {
	return slices.Concat(
		frameworkDifferences(),
		fluxDifferences(),
		groupDifferences(),
		statusDifferences(),
		sliceDifferences(),
		secretDifferences(),
		ttlDifferences(),
	)
}

// secretDifferences are those of the names of Secrets.
func secretDifferences() []intended {
	const reason = "The end of the name is random, so that the controller creates Secrets without a right to read any; upstream reads them in " +
		"all namespaces by names that can be guessed."
	return []intended{
		{cases: `(mpi|flux)-.*`, path: `Secret\[train-(mpi-ssh-auth|flux-curve)(-random)?\]`, reason: reason},
		{
			cases:  `(mpi|flux)-.*`,
			path:   `JobSet\.spec\.replicatedJobs\[\w+\]\.template\.spec\.template\.spec\.volumes\[(mpi-ssh-auth|flux-curve)\]\.secret\.secretName`,
			reason: reason,
		},
	}
}

// ttlDifferences are those of the TTL of finished JobSets.
func ttlDifferences() []intended {
	return []intended{{
		cases:  `plain-ttl`,
		path:   `JobSet\.spec\.ttlSecondsAfterFinished`,
		reason: "A JobSet gets its TTL once its job's end is recorded: one that is gone before is created again.",
	}}
}

// statusDifferences are those of the files and variables for reports.
func statusDifferences() []intended {
	return []intended{
		{
			cases:    `.*-status.*`,
			path:     `ConfigMap\[train-tls-config\]\.metadata\.annotations`,
			addition: true,
			reason:   "It tells one content from another, so that running jobs get a new authority without a look at each ConfigMap.",
		},
	}
}

// sliceDifferences are those of trainers that are several Jobs, one for each slice. Upstream's webhook lets none in
// (#2318, #3408 is open).
func sliceDifferences() []intended {
	const (
		node   = `JobSet\.spec\.replicatedJobs\[node\]`
		slices = `jax-(slices|slices-entrypoint|tpu-slices|tpu-compute-class|tpu-cubes-slices)`
	)
	return []intended{
		{
			cases: slices, path: node + `\.(replicas|template\.spec\.(completions|parallelism))`,
			reason: "The nodes of a job are divided among its slices, a Job for each.",
		},
		{
			cases: slices, path: node + `\.template\.spec\.template\.spec\.containers\[node\]\.(command.*|env.*)`,
			reason: "A process's id counts over all slices, and TPUs have to know their slice's hosts.",
		},
		{
			cases: `jax-slices-refuse-uneven|jax-tpu-refuse-.*`, path: `refused`,
			reason: "Nodes that do not fill their slices, and shapes that no slice has, would wait for ever.",
		},
	}
}

// fluxDifferences are those of Flux, where upstream panics more often than it refuses.
func fluxDifferences() []intended {
	const main = `JobSet\.spec\.replicatedJobs\[node\]\.template\.spec\.template\.spec\.containers\[node\]`
	return []intended{
		{
			cases: `flux-(batch|command-without-args)`, path: main + `\.args`,
			reason: "Upstream leaves the runtime's arguments behind the script, which does not read them.",
		},
		{
			cases: `flux-no-trainer`, path: `accepted`,
			reason: "Upstream panics without spec.trainer (#3667); the runtime says enough.",
		},
		{
			cases:  `flux-quoting`,
			path:   main + `\.command\[2\]`,
			reason: "A word that bash would split or expand is quoted; upstream's program sees other arguments than its user wrote.",
		},
		{
			cases: `flux-refuse-(long-name|no-label|no-node|settings)`, path: `fault .*`,
			reason: "Jobs whose brokers would never start: upstream panics without spec.trainer, or applies them.",
		},
	}
}

// groupDifferences are those of the pods' groups and nodes.
func groupDifferences() []intended {
	const pod = `JobSet\.spec\.replicatedJobs\[[\w-]+\]\.template\.spec\.template`
	return []intended{
		{
			cases: `torch-(coscheduling.*|volcano)`, path: `PodGroup\[train\]\.spec\.minResources\.nvidia\.com/gpu`,
			addition: true,
			reason:   "What a container only limits it requests too, as soon as the API server has it.",
		},
		{
			cases:  `torch-coscheduling-initializers`,
			path:   pod + `\.metadata\.labels|PodGroup\[train\]\.spec\.minMember`,
			reason: "In the group is what starts together, over all its Jobs; upstream waits for initializers for ever.",
		},
		{
			cases: `torch-gang-kueue-admitted`, path: pod + `\.spec\.tolerations.*`,
			reason: "Kueue's tolerations are added to the runtime's: those that they replace made its nodes reachable.",
		},
		{
			cases: `torch-refuse-podgroup-policies`, path: `refused`,
			reason: "Upstream makes both groups, and a pod has one scheduler.",
		},
		{
			cases:  `plain-cache-dataset`,
			path:   `accepted`,
			reason: "A streamed dataset has no files to be mounted; upstream refuses every job of its own runtime with a cache.",
		},
		{
			cases: `torch-refuse-patch-orders`, path: `refused`,
			reason: "With upstream a user's patch can delete what the runtime's administrator set.",
		},
		{
			cases: `torch-refuse-too-many|plain-gang-refuse-late`, path: `refused`,
			reason: "More pods than the controller's memory, or the announcement of late members, has room for.",
		},
	}
}

// frameworkDifferences are those of the frameworks' additions, and of patches.
func frameworkDifferences() []intended {
	const (
		job  = `JobSet\.spec\.replicatedJobs\[\w+\]\.template\.spec`
		node = job + `\.template\.spec\.containers\[node\]`
	)
	return []intended{
		{
			cases:    `(torch|jax|xgboost)-.*`,
			path:     node + `\.(env|ports)(\[((PET|JAX|DMLC)_\w+|\d+)\])?`,
			addition: true,
			reason:   "The framework's variables and port also without spec.trainer: upstream #4076.",
		},
		{
			cases: `torch-env-order|torch-claims`, path: node + `\.resources\.claims`, addition: true,
			reason: "Upstream drops the claims of resources, and the pod waits for devices for ever.",
		},
		{
			cases:  `torch-(mnnvl-)?claims`,
			path:   node + `\.env\[PET_NPROC_PER_NODE\]\.value`,
			reason: "GPUs that come by claims are counted by torchrun; upstream starts as many processes as there are CPUs.",
		},
		{
			cases:    `.*-env-sources`,
			path:     node + `\.env\[FROM_FIELD\]\.valueFrom\.fieldRef\.apiVersion`,
			addition: true,
			reason:   "Upstream drops fieldRef.apiVersion silently.",
		},
		{
			cases: `torch-env-file`, path: node + `\.env\[FROM_FILE\]\.valueFrom\.fileKeyRef`, addition: true,
			reason: "Upstream drops sources that it does not know silently.",
		},
		{
			cases:  `jax-env-order|torch-nameless-ports`,
			path:   node + `\.ports\[0\]\.containerPort`,
			reason: "Of two nameless ports upstream makes one twice and loses its own; the API server refuses the JobSet.",
		},
		{
			cases:  `mpi-.*`,
			path:   node + `\.image`,
			reason: "The job's image reaches the nodes too: mpirun starts there what the launcher has (upstream #4030).",
		},
		{
			cases:  `mpi-(launcher(-as-node)?|gang(-replicas)?|status)`,
			path:   `JobSet\.spec\.replicatedJobs\[launcher\]\.template\.spec\.template\.spec\.containers\[node\]\.command(\[\d\])?`,
			reason: "The launcher waits until its hosts' names resolve; mpirun takes itself for remote otherwise, and dies (upstream #3783).",
		},
		{
			cases: `xgboost-(workers|helper)`,
			path:  node + `\.command(\[\d+\])?`,
			reason: "The container's shell waits for the tracker's name, without which Rabit dies, and starts a worker for each that DMLC_NUM_WORKER counts; " +
				"with upstream the first waits for the others for ever.",
		},
		{
			cases:  `xgboost-.*`,
			path:   node + `\.env\[DMLC_NUM_WORKER\]\.value`,
			reason: "No more workers are counted than are started: one on each node where no command is known, else what numProcPerNode says.",
		},
		{
			cases: `mpi-launcher-nodes.*`, path: job + `\.(completions|parallelism)`,
			reason: "One launcher, whatever the policy's numNodes: each would start the job.",
		},
		{
			cases:  `mpi-launcher-nodes-as-node|mpi-gang-replicas`,
			path:   `ConfigMap\[train-mpi-hostfile\]\.data\.hostfile`,
			reason: "So there is one launcher in the hostfile too.",
		},
		{
			cases:  `mpi-implementation-empty`,
			path:   `accepted`,
			reason: "The schema takes an empty implementation, and upstream then fails for ever; we take it for OpenMPI.",
		},
		{
			cases: `torch-refuse-num(nodes|bers)`, path: `refused`,
			reason: "Numbers below 1: upstream applies a JobSet that never works.",
		},
		{
			cases: `torch-refuse-patch-(job|container)`, path: `refused`,
			reason: "Upstream means to refuse patches for what is not in the runtime, but looks after merging them in.",
		},
		{
			cases:  `plain-patch-trainer`,
			path:   job + `\.template\.spec\.containers(\[(node|trainer)\].*)?`,
			reason: "Upstream's guide patches container trainer, and upstream adds one of that name without an image beside the runtime's; we patch the one that trains.",
		},
		{
			cases:  `plain-patch-refuse-many`,
			path:   `fault spec\.runtimePatches: Invalid value: must not have .* that doesn't exist .*`,
			reason: "The same, in a job that upstream refuses for another reason.",
		},
		{
			cases:  `torchtune-refuse-runtime-nodes.*`,
			path:   `refused`,
			reason: "Upstream does not look at the runtime's numNodes, and trains fully where LoRA was asked for, or not at all.",
		},
		{
			cases: `torchtune-refuse`, path: `fault spec\.trainer\.numNodes: Invalid value: must be 1 for  model`,
			reason: "The same, with a model that does not exist either.",
		},
		{
			cases:  `torch-gang-(wishes|refuse-members-differ)|torch-refuse-pod-wish|torch-scheduling-refuse-(basic|topology)`,
			path:   `refused`,
			reason: "The runtime has wishes that only a gang can have; this test takes the gang away.",
		},
	}
}
