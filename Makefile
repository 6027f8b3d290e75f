# Lockstep's front door. `make` alone lists what there is.

SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help

BIN := $(CURDIR)/bin
GO  ?= go

# Tools are pinned here and installed into bin/; they stay out of go.mod, where their graphs would fight Kubernetes' pins.
GOLANGCI_VERSION       := v2.15.0
CONTROLLER_GEN_VERSION := v0.23.0
BENCHSTAT_VERSION      := v0.0.0-20260908200009-22c9c6c9d4da

# No C compiler is needed, and two jobs at a time keep a small machine usable.
export CGO_ENABLED := 0
JOBS := -p 2

# kube-scheduler reports the release that it was built from; a module build does not carry it (a test checks the pin).
KUBERNETES_VERSION := v1.37.2
LDFLAGS := -X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION) \
	-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37

# go build -v names every compiled package; this counts them and passes everything else on.
PROGRESS := awk '/^go: downloading/ {if (++d % 50 == 0) {print "  " d " modules downloaded"; fflush()} next} \
	/^[A-Za-z0-9._~\/-]+$$/ {if (++n % 100 == 0) {print "  " n " packages compiled"; fflush()} next} {print; fflush()}'

BINARIES := ./simulator/cmd/lockstep ./scheduler/cmd/lockstep-scheduler ./controller/cmd/lockstep-controller
# Packages cheap enough for the race detector: their tests with the whole scheduler have the build tag !race. The replay of openb starts
# nothing beside it.
RACE_PACKAGES := ./topology/... ./controller/... ./manifests/... \
	./simulator/inputs/badinput/... ./simulator/inputs/yamlfile/... ./simulator/inputs/fleet/... ./simulator/inputs/workload/... \
	./simulator/live/summary/... ./simulator/live/liverun/... ./simulator/bench/loadtest/... ./simulator/inputs/capture/... \
	./simulator/policy/baseline/... ./simulator/engine/clock/... ./simulator/score/compare/... ./simulator/score/measure/... \
	./simulator/score/progress/... ./simulator/score/results/... ./simulator/inputs/scenario/... ./simulator/inputs/trace/... ./simulator/engine/direct/... \
	./scheduler/gangqueue/... ./scheduler/gangpermit/... ./scheduler/gangpreemption/... \
	./scheduler/explanation/... ./scheduler/config/... ./scheduler/incompletegangs/... ./scheduler/waiting/...
# Packages without Kubernetes, down to their last import: depguard sees direct imports only.
PURE_PACKAGES := ./scheduler/contention ./simulator/inputs/cost ./simulator/inputs/scenario ./simulator/engine ./simulator/engine/direct \
	./simulator/score/bound ./simulator/score/measure ./simulator/score/results ./simulator/score/report ./simulator/score/compare
GENERATED := $(shell find controller/api manifests/chart/crds -name 'zz_generated.*.go' -o -name '*.yaml' -path 'manifests/chart/crds/*' | sort) docs/annotations.md

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build lockstep, lockstep-scheduler and lockstep-controller into bin/ (minutes once, then seconds).
	@mkdir -p $(BIN)
	@echo "building lockstep, lockstep-scheduler and lockstep-controller"
	@$(GO) build -v $(JOBS) -buildvcs=auto -ldflags "$(LDFLAGS)" -o $(BIN)/ $(BINARIES) 2>&1 | $(PROGRESS)

# The images are for these platforms, of this commit; in a container runtime their names begin with REGISTRY.
PLATFORMS := linux_amd64 linux_arm64
IMAGES := $(CURDIR)/out/images
REGISTRY ?=

.PHONY: images
images: ## Write images of the three commands and of JobSet as OCI layouts into out/images, with SBOM and provenance (a quarter of an hour once).
	@mkdir -p $(IMAGES) && rm -rf $(IMAGES)/layout
	@for platform in $(PLATFORMS); do \
		echo "building for $$platform"; mkdir -p $(IMAGES)/bin/$$platform; \
		GOOS=$${platform%_*} GOARCH=$${platform#*_} $(GO) build -v $(JOBS) -trimpath -buildvcs=auto -ldflags "-s -w $(LDFLAGS)" \
			-o $(IMAGES)/bin/$$platform/ $(BINARIES) sigs.k8s.io/jobset 2>&1 | $(PROGRESS) || exit 1; \
	done
	@$(GO) run $(JOBS) ./manifests/cmd/images -binaries $(IMAGES)/bin -dir $(IMAGES)/layout -registry "$(REGISTRY)" \
		-platforms "$$(echo $(PLATFORMS) | tr ' ' ,)"

JOBSET_CHART = $(shell $(GO) list -m -f '{{.Dir}}' sigs.k8s.io/jobset)/charts/jobset

.PHONY: chart
chart: build ## Pack the Helm chart, with JobSet's in it, into out/chart.
	@rm -f out/chart/lockstep-* && mkdir -p out/chart
	@$(GO) run $(JOBS) ./manifests/cmd/chart -binary $(BIN)/lockstep -jobset "$(JOBSET_CHART)" -dir out/chart

.PHONY: bundle
bundle: images ## Pack chart and images into one archive in out/chart, for clusters without a network.
	@rm -f out/chart/lockstep-* && mkdir -p out/chart
	@$(GO) run $(JOBS) ./manifests/cmd/chart -binary $(IMAGES)/bin/linux_amd64/lockstep -jobset "$(JOBSET_CHART)" -dir out/chart \
		-layouts $(IMAGES)/layout

# The tag of this commit, by which make release names what it collects.
TAG = $(shell git describe --exact-match --tags HEAD 2>/dev/null)

.PHONY: release
release: ## Collect what the tag of this commit publishes in out/release: archives, chart, images, SBOMs, notes, sums (a quarter of an hour once).
	@test -n "$(TAG)" || { echo "release: this commit has no tag; git tag vX.Y.Z, and give the tag a section in CHANGELOG.md" >&2; exit 2; }
	@test -z "$$(git status --porcelain)" || { echo "release: there are uncommitted changes; commit them, and move the tag" >&2; exit 2; }
	@$(MAKE) --no-print-directory bundle
	@$(GO) run $(JOBS) ./manifests/cmd/release -tag "$(TAG)" -binaries $(IMAGES)/bin -charts out/chart -dir out/release \
		-platforms "$$(echo $(PLATFORMS) | tr ' ' ,)"

.PHONY: run
run: build ## Bring up a real cluster with a simulated GPU fleet, run the sample TrainJobs and show where they went.
	$(BIN)/lockstep up $(ARGS)

# Tests of schedulers and clusters wait part of the time, so more of them run at a time than there are cores. More than these would only wait for each
# other, and the patience of some would end. Vet belongs to make lint.
WAITING := -parallel 4 -vet=off
PACKAGES := $(GO) run $(JOBS) ./simulator/cmd/packages

.PHONY: test
test: test-alone test-others ## Run every test, with embedded clusters for the integration tests.

# Go retains the results of tests that start no program, as long as their code and the files and variables that they read are the same.
.PHONY: test-alone
test-alone:
	@packages=$$($(PACKAGES) alone) && $(GO) test -p 3 $(WAITING) -timeout 30m $$packages

# Whatever starts a program runs anew each time, in another order. The longest suite begins first; more than two clusters at a time end the patience of some.
.PHONY: test-others
test-others:
	@packages=$$($(PACKAGES) others) && $(GO) test -p 2 $(WAITING) -count=1 -shuffle=on -timeout 30m ./simulator/integration $$packages

# What make test-fast compares with, and the folders that it leaves to make test: clusters, replays and random scenes by the thousand.
BASE ?= $(shell git merge-base HEAD origin/main 2>/dev/null || git rev-parse HEAD~1)
SLOW := simulator/integration,simulator/faults,simulator/engine,scheduler/waiting,scheduler/contention

.PHONY: test-fast
test-fast: ## Test the packages that changed since BASE, and those that import them, without clusters (a minute and a half when built).
	@packages=$$({ git diff --name-only $(BASE); git ls-files -o --exclude-standard; } | $(PACKAGES) -without $(SLOW) changed) || exit 1; \
	if [ -z "$$packages" ]; then echo "no package with tests changed since $(BASE)"; else $(GO) test -p 3 $(WAITING) -short $$packages; fi

# The release before this one, which make e2e-install upgrades from and rolls back to.
PREVIOUS ?= f83f636

# The last release that patches suspended JobSets, where later ones replace them: jobs return to it by the commands of docs/trust.md.
PATCHING ?= 85ea028

.PHONY: test-full
test-full: test $(BIN)/kubectl ## The long suites: fewer gates, more deaths of the scheduler, real Kueue, the race detector (gcc).
	packages=$$($(PACKAGES) alone) && $(GO) test -p 3 $(WAITING) -count=1 -shuffle=on -timeout 30m $$packages
	$(GO) test $(JOBS) -count=1 -shuffle=on -timeout 30m ./simulator/integration -args -mode groups
	$(GO) test $(JOBS) -count=1 -timeout 30m ./simulator/integration -args -requests check
	$(GO) test $(JOBS) -count=1 -timeout 30m -v -run Stream ./simulator/integration/coexistence -args -long
	@for release in "1.37 full" "1.37 groups" "1.34 resources"; do \
		$(GO) test $(JOBS) -count=1 -timeout 30m -v ./simulator/integration/install -args -kubernetes $${release% *} -mode $${release#* } || exit 1; done
	$(GO) test $(JOBS) -count=1 -timeout 30m -v -run 'ForgersNeverWin|Guard_' ./simulator/integration -args -rounds 200 -long
	$(GO) test $(JOBS) -count=1 -timeout 40m -v ./simulator/integration/upgrade -args -previous $(PATCHING)
	$(GO) test $(JOBS) -count=1 -timeout 30m -v ./simulator/integration/leader -args -long
	$(GO) test $(JOBS) -count=1 -timeout 30m -run TwoCliques ./simulator/integration -args -long
	$(GO) test $(JOBS) -count=1 -timeout 60m ./simulator/integration/reality -args -long
	$(GO) test $(JOBS) -count=1 -timeout 30m -v -run Replay ./simulator/integration/reality -args -uncontrolled
	$(GO) test $(JOBS) -count=1 -timeout 30m -run 'Dies|Torn|Start_' ./scheduler -args -long
	$(GO) test $(JOBS) -count=1 -timeout 30m -run Published ./simulator/policy/openb -args -long
	$(GO) test $(JOBS) -count=1 -timeout 60m -run 'EnginesAgree|PlayScenes' ./simulator/engine/kube -args -seeds 100 -others 6 -long
	$(GO) test $(JOBS) -count=1 -timeout 60m -v -run Seeds ./simulator/faults -args -seeds 3000
	$(GO) test $(JOBS) -count=1 -timeout 60m -v ./simulator/faults/bugs -args -bugs .
	@for mode in full resources; do \
		$(GO) test $(JOBS) -count=1 -timeout 30m -v ./simulator/integration/kueue -args -kueue -mode $$mode || exit 1; done
	CGO_ENABLED=1 $(GO) test $(JOBS) -race -shuffle=on -count=3 -timeout 30m $(RACE_PACKAGES)
	$(MAKE) --no-print-directory e2e-install test-takeover test-operators test-karpenter test-versions conformance conformance-kueue
	$(GO) test $(JOBS) -count=1 -timeout 60m ./scheduler/contention ./simulator/engine/direct -args -scenes 500

# The programs of a real node: Kubernetes' kubelet, the container runtime that its module pins, and Debian's runc, which is of C.
NODE := $(BIN)/node
RUNTIME := $(addprefix github.com/containerd/containerd/v2/cmd/,containerd containerd-shim-runc-v2 ctr) \
	$(addprefix github.com/containernetworking/plugins/plugins/,ipam/host-local main/bridge main/loopback)

.PHONY: nodes
nodes: $(addprefix $(NODE)/,kubelet kube-proxy containerd coredns runc nft rank) ## Build kubelet and containerd for real nodes into bin/node (ten minutes once).

$(NODE)/kubelet: go.mod
	@echo "building the kubelet"
	@$(GO) build $(JOBS) -ldflags "-s -w $(LDFLAGS)" -o $@ k8s.io/kubernetes/cmd/kubelet

$(NODE)/kube-proxy: go.mod
	@echo "building kube-proxy"
	@$(GO) build $(JOBS) -ldflags "-s -w $(LDFLAGS)" -o $@ k8s.io/kubernetes/cmd/kube-proxy

$(NODE)/coredns: $(wildcard simulator/live/realnode/coredns/*)
	@echo "building CoreDNS"
	@cd simulator/live/realnode/coredns && $(GO) build $(JOBS) -ldflags "-s -w" -o $@ .

$(NODE)/containerd: simulator/live/realnode/containerd/go.mod
	@echo "building containerd and the plugins of its network"
	@cd simulator/live/realnode/containerd && $(GO) build $(JOBS) -tags "no_btrfs no_devmapper no_zfs netgo osusergo" -ldflags "-s -w" \
		-o $(NODE)/ $(RUNTIME)

$(NODE)/rank: $(wildcard simulator/cmd/rank/*)
	@$(GO) build $(JOBS) -ldflags "-s -w" -o $@ ./simulator/cmd/rank

$(NODE)/runc:
	@mkdir -p out/runc $(NODE) && cd out/runc && rm -rf * && apt-get download runc && dpkg -x runc_*.deb . && cp usr/sbin/runc $@

# kube-proxy writes its rules by nft, which comes with its libraries.
NFTABLES := nftables libnftables1 libjansson4 libnftnl11 libmnl0 libxtables12 libedit2 libbsd0 libmd0

$(NODE)/nft:
	@rm -rf out/nftables && mkdir -p out/nftables $(NODE)/nftables
	@cd out/nftables && apt-get download $(NFTABLES) && for package in *.deb; do dpkg -x $$package .; done && \
		cp usr/sbin/nft $$(find . -name 'lib*.so.*') $(NODE)/nftables/
	@printf '#!/bin/sh\nhere=$$(dirname "$$0")/nftables\nLD_LIBRARY_PATH=$$here exec "$$here/nft" "$$@"\n' > $@ && chmod +x $@

# Debian and frameworks of PyPI for the containers of real nodes.
USERLAND := $(CURDIR)/out/userland

.PHONY: userland
userland: $(USERLAND)/layer.tar ## Install Debian and frameworks of PyPI for real nodes into out/userland (root; five minutes and eight gigabytes once).

$(USERLAND)/built: $(addprefix simulator/live/realnode/userland/,build.sh requirements.txt)
	@simulator/live/realnode/userland/build.sh $(USERLAND)/root
	@touch $@

# What trains in the samples is what the tests of frameworks train with.
WORKSPACE := $(wildcard simulator/live/realnode/userland/workspace/*) simulator/integration/frameworks/programs/trainings.py

$(USERLAND)/layer.tar: $(USERLAND)/built simulator/live/realnode/userland/layer.sh $(WORKSPACE)
	@simulator/live/realnode/userland/layer.sh $(USERLAND)/root $@ $(WORKSPACE)

# What the test of frameworks adds: -write writes the table of docs/real-nodes.md.
REAL ?=

.PHONY: e2e-real
e2e-real: build nodes userland ## Run JAX, XGBoost, torch, MPI, DeepSpeed and transformers through Kubeflow's SDK on two real nodes, and let ranks and nodes fail (root; ten minutes).
	$(BIN)/lockstep up --nodes real:2 --dir out/real --jobs manifests/samples-real
	$(GO) test $(JOBS) -count=1 -timeout 40m -v ./simulator/integration/frameworks -args -real $(REAL)

# Kubeflow's own data cache, in Rust, and its initializer, in Python: of the release that conformance is checked against.
DATA_CACHE := $(BIN)/data-cache

.PHONY: data-cache
data-cache: $(DATA_CACHE)/head ## Build Kubeflow's data cache for real nodes into bin/data-cache (cargo; ten minutes once).

$(DATA_CACHE)/head: controller/conformance/go.mod
	@echo "building Kubeflow's data cache (ten minutes once)"
	@rm -rf $(DATA_CACHE) && mkdir -p $(DATA_CACHE)/app/pkg
	@cd controller/conformance && $(GO) mod download github.com/kubeflow/trainer/v2 && \
		cd $$($(GO) list -m -f '{{.Dir}}' github.com/kubeflow/trainer/v2)/pkg && \
		CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_STRIP=true CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$(CURDIR)/out/data-cache/target \
			cargo build --quiet --locked $(subst -p,-j,$(JOBS)) --manifest-path data_cache/Cargo.toml --bin head --bin worker && \
		cp -r initializers $(DATA_CACHE)/app/pkg/ && cp ../manifests/overlays/data-cache/cluster_role.yaml $(DATA_CACHE)/ && chmod -R u+w $(DATA_CACHE)
	@install -t $(DATA_CACHE) out/data-cache/target/debug/worker out/data-cache/target/debug/head

.PHONY: e2e-data-cache
e2e-data-cache: nodes userland data-cache ## Stream a table to torch from Kubeflow's data cache on two real nodes, with LeaderWorkerSet's controller (root; five minutes).
	$(GO) test $(JOBS) -count=1 -timeout 30m -v ./simulator/integration/datacache -args -real $(REAL)

# Helm has a graph of its own. The one before it is tried, too.
HELM_VERSION  := v4.3.1
HELM3_VERSION := v3.22.0

$(BIN)/helm:
	@echo "building helm $(HELM_VERSION) (four minutes once)"
	@GOBIN=$(BIN) $(GO) install $(JOBS) helm.sh/helm/v4/cmd/helm@$(HELM_VERSION)

$(BIN)/helm3:
	@echo "building helm $(HELM3_VERSION) (three minutes once)"
	@GOBIN=$(BIN)/three $(GO) install $(JOBS) helm.sh/helm/v3/cmd/helm@$(HELM3_VERSION)
	@mv $(BIN)/three/helm $@ && rmdir $(BIN)/three

# Chart and images of the release before this one, built from a clone of this repository.
BEFORE := $(CURDIR)/out/previous

.PHONY: previous
previous:
	@rm -rf $(BEFORE) && mkdir -p $(BEFORE) && git clone -q --no-checkout . $(BEFORE)/tree && git -C $(BEFORE)/tree checkout -q $(PREVIOUS)
	@$(MAKE) --no-print-directory -C $(BEFORE)/tree images PLATFORMS=linux_amd64 IMAGES=$(BEFORE)
	@cd $(BEFORE)/tree && $(GO) run $(JOBS) ./manifests/cmd/chart -binary $(BEFORE)/bin/linux_amd64/lockstep \
		-jobset "$(JOBSET_CHART)" -dir $(BEFORE)

.PHONY: e2e-install
e2e-install: nodes previous $(BIN)/helm $(BIN)/helm3 $(BIN)/kubectl ## Install the chart with helm on real nodes that run the real images, upgrade, roll back, remove (root; twenty minutes once).
	@$(MAKE) --no-print-directory images PLATFORMS=linux_amd64
	@rm -rf out/e2e && mkdir -p out/e2e
	@$(GO) run $(JOBS) ./manifests/cmd/chart -binary $(IMAGES)/bin/linux_amd64/lockstep -jobset "$(JOBSET_CHART)" -dir out/e2e
	$(GO) test $(JOBS) -count=1 -timeout 30m -v ./simulator/integration/real -args -real

# The minor releases of Kubernetes before the one of go.mod.
VERSIONS := 1.34 1.35 1.36

# The processes that share the tests of test-resources, with a cluster each.
PARTS ?= 3

.PHONY: test-resources
test-resources: ## The integration tests where PodGroups are custom resources, on the release of go.mod without feature gates.
	$(GO) test $(JOBS) $(WAITING) -count=1 -shuffle=on -timeout 40m ./simulator/integration -args -mode resources -parts $(PARTS)

# What make test-versions runs, RELEASE/MODE each. Its table is of all logs that there are: SUITES="1.34/resources" plays one again.
SUITES ?= $(VERSIONS:%=%/resources) 1.37/resources 1.37/groups 1.37/full

.PHONY: test-versions
test-versions: ## The integration tests on every minor release and in every mode, and a table of them (an hour; each release is built once).
	@mkdir -p out/versions
	@$(GO) test $(JOBS) -c -o out/versions/integration.test ./simulator/integration
	@set -e; for version in $(SUITES); do \
		echo "Kubernetes $$version"; \
		(cd simulator/integration && $(CURDIR)/out/versions/integration.test -test.v -test.timeout 40m \
			-kubernetes $${version%/*} -mode $${version#*/}) > out/versions/$${version/\//-}.log 2>&1 || failed=1; \
	done; $(GO) run ./simulator/cmd/versions out/versions; test -z "$$failed"

# What make test-repeat runs, FOLDER[:MODE] each: the tests that have a cluster or a clock. REPEATED=simulator/integration:resources
# repeats one of them.
CLUSTERED := automatic coexistence devices install leader moving reality tpu upgrade
CLOCKED := scheduler scheduler/demand scheduler/gangqueue manifests/gangapi controller \
	$(addprefix controller/,certificate lease statusserver trainjob turns)
REPEATED ?= simulator/integration simulator/integration:resources $(CLUSTERED:%=simulator/integration/%) $(CLOCKED)
ROUNDS ?= 20

.PHONY: test-repeat
test-repeat: build ## Each suite that has a cluster or a clock, ROUNDS times (20) in random order; which runs failed (hours).
	@mkdir -p out/repeat; failed=; for suite in $(REPEATED); do \
		folder=$${suite%:*}; mode=; case $$suite in *:*) mode="-mode $${suite#*:}";; esac; \
		name=out/repeat/$$(echo $$suite | tr /: __); \
		$(GO) test $(JOBS) -vet=off -c -o $$name.test ./$$folder || exit 1; \
		for round in $$(seq $(ROUNDS)); do \
			log=$$name.$$round.log; begin=$$(date +%s); result=ok; \
			(cd $$folder && $(CURDIR)/$$name.test -test.parallel 4 -test.shuffle=on -test.timeout 40m $$mode) > $$log 2>&1 \
				|| { result=failed; failed="$$failed $$log"; }; \
			echo "$$suite, $$round of $(ROUNDS): $$result after $$(($$(date +%s) - begin)) s"; \
		done; \
	done; for log in $$failed; do echo "failed: $$log" >&2; grep -e '^ *--- FAIL' -e complains $$log >&2; done; test -z "$$failed"

# The releases of Kubeflow Trainer that Lockstep takes over from and returns to.
TRAINERS := v2.3.0 v2.2.1
# What the takeover test adds: -write writes docs/takeover.md.
TAKEOVER ?=

.PHONY: test-takeover
test-takeover: $(TRAINERS:%=$(BIN)/kubeflow-trainer/%/trainer-controller-manager) $(BIN)/kubectl ## Take over from each release of Kubeflow Trainer, and give back (ten minutes).
	$(GO) test $(JOBS) -count=1 -timeout 30m -v ./simulator/integration/takeover \
		-args $(TRAINERS:%=-trainer bin/kubeflow-trainer/%) $(TAKEOVER)

# What the test of other controllers adds: -write writes the table of docs/dialects.md.
OPERATORS ?=

.PHONY: test-operators
test-operators: ## Gangs that the controllers of other projects make, as they were released (ten minutes, and as long to build once).
	$(GO) test $(JOBS) -count=1 -timeout 60m -v ./simulator/integration/operators -args -operators $(BIN)/operators $(OPERATORS)
	@for release in 1.36 1.37; do $(GO) test $(JOBS) -count=1 -timeout 60m -v -run TestNative ./simulator/integration/operators \
		-args -operators $(BIN)/operators -mode resources -native -kubernetes $$release || exit 1; done

# The release of the Kubeflow SDK that the tests are held to, and what the test of its calls adds: -write writes the table of docs/sdk.md.
SDK_VERSION := 0.5.0
SDK ?=

.PHONY: test-sdk
test-sdk: out/sdk/$(SDK_VERSION)/ready ## Every call of the Kubeflow SDK, of the pinned release and of the newest (ten minutes; Python 3.10 with venv).
	@newest=$$(out/sdk/$(SDK_VERSION)/bin/python -m pip index versions kubeflow 2>/dev/null | sed -n '1s/kubeflow (\(.*\))/\1/p'); \
	test -n "$$newest" || echo "test-sdk: the newest release is unknown; only $(SDK_VERSION) is tried" >&2; \
	folders="-sdk out/sdk/$(SDK_VERSION)"; \
	if [ -n "$$newest" ] && [ "$$newest" != "$(SDK_VERSION)" ]; then \
		test -e out/sdk/$$newest/ready || { python3 -m venv out/sdk/$$newest && \
			out/sdk/$$newest/bin/pip install -q kubeflow==$$newest && touch out/sdk/$$newest/ready; } || exit 1; \
		folders="$$folders -sdk out/sdk/$$newest"; fi; \
	$(GO) test $(JOBS) -count=1 -timeout 40m -v ./simulator/integration/sdk -args $$folders $(SDK)

out/sdk/$(SDK_VERSION)/ready: simulator/integration/sdk/requirements.txt
	@rm -rf $(@D) && mkdir -p out/sdk && python3 -m venv $(@D) && $(@D)/bin/pip install -q -r $< && touch $@

# Karpenter, with its provider that makes nodes of KWOK.
KARPENTER := sigs.k8s.io/karpenter@v1.8.0

$(BIN)/karpenter:
	@echo "building Karpenter (three minutes once)"
	@GOBIN=$(BIN)/karpenter-kwok $(GO) install $(JOBS) $(subst @,/kwok@,$(KARPENTER))
	@mv $(BIN)/karpenter-kwok/kwok $@ && rmdir $(BIN)/karpenter-kwok

.PHONY: test-karpenter
test-karpenter: $(BIN)/karpenter ## Count the nodes that the real Karpenter makes for gangs that wait (three minutes).
	$(GO) test $(JOBS) -count=1 -timeout 30m -v -run Karpenter ./simulator/integration/coexistence -args -karpenter $(BIN)/karpenter

.PHONY: bench
bench: $(BIN)/benchstat ## Run the benchmarks six times and summarise them.
	$(GO) test $(JOBS) -run '^$$' -bench . -benchmem -count 6 ./topology/... | tee $(BIN)/bench.txt
	$(BIN)/benchstat $(BIN)/bench.txt

# What make bench-schedperf runs: gangs, ordinary (pods without gangs), quick (ordinary on 500 nodes) or all; of these, workloads that
# match a regular expression; how often; and the time after which no further round begins.
ROWS      ?= all
WORKLOADS ?=
RUNS      ?= 3
BUDGET    ?= 55m
# A benchmark of another project's needs its own test binary, which embeds an API server, and an etcd beside it.
BENCH := out/bench

.PHONY: bench-schedperf
bench-schedperf: ## Kubernetes' own scheduler_perf, native and ours in turn (hours; ROWS=quick RUNS=1: twenty minutes).
	@mkdir -p $(BENCH)/bin
	@echo "building etcd and scheduler_perf"
	@$(GO) build $(JOBS) -o $(BENCH)/bin/etcd go.etcd.io/etcd/server/v3
	@$(GO) vet $(JOBS) -tags schedperf ./scheduler/schedperf/...
	@$(GO) test $(JOBS) -tags schedperf -c -o $(BENCH)/bin/measure ./scheduler/schedperf/measure
	@$(GO) run $(JOBS) ./scheduler/schedperf/cmd/bench-schedperf -dir $(BENCH) -rows "$(ROWS)" -runs "$(RUNS)" \
		-budget "$(BUDGET)" -workloads "$(WORKLOADS)"

.PHONY: bench-contention
bench-contention: ## Who waits how long on a full fleet: disciplines in virtual time, native and ours under a stream (five minutes).
	$(GO) test $(JOBS) -run '^$$' -bench 'Contention|Preemption' -benchtime 1x ./simulator/engine/direct
	$(GO) test -p 1 -run '^$$' -bench Contention -benchtime 1x -timeout 15m ./scheduler/waiting 2>/dev/null | tr '\t' '\n'

# The commit that bench-before compares with, and how often both play: that before decisions were weighed in GPU-hours, whose only order was backfill.
FASTER_THAN ?= ce029d0
ROUNDS      ?= 6

.PHONY: bench-before
bench-before: $(BIN)/benchstat ## The machine's speed on 1,000 contended nodes, an earlier commit, now, and now as lockstep simulate collects memory, in turn (five minutes).
	@mkdir -p $(BENCH)/bin
	@rm -rf $(BENCH)/before && git worktree prune && git worktree add --force --detach $(BENCH)/before $(FASTER_THAN)
	@cd $(BENCH)/before && $(GO) test $(JOBS) -c -o ../bin/replay-before ./simulator/engine/direct
	@$(GO) test $(JOBS) -c -o $(BENCH)/bin/replay-now ./simulator/engine/direct
	@git worktree remove --force $(BENCH)/before
	@: > $(BENCH)/before.txt; : > $(BENCH)/now.txt; : > $(BENCH)/shipped.txt
	@for round in $$(seq $(ROUNDS)); do \
		$(BENCH)/bin/replay-before -test.run '^$$' -test.bench 'Replay/nodes=1000/backfill' -test.benchtime 1x | sed s,/backfill,/default, >> $(BENCH)/before.txt; \
		$(BENCH)/bin/replay-now -test.run '^$$' -test.bench 'Replay/nodes=1000/promise' -test.benchtime 1x | sed s,/promise,/default, >> $(BENCH)/now.txt; \
		GOGC=400 $(BENCH)/bin/replay-now -test.run '^$$' -test.bench 'Replay/nodes=1000/promise' -test.benchtime 1x | sed s,/promise,/default, >> $(BENCH)/shipped.txt; \
	done
	@$(BIN)/benchstat $(BENCH)/before.txt $(BENCH)/now.txt $(BENCH)/shipped.txt

.PHONY: bench-devices
bench-devices: ## What questions about devices cost, and 512 members with eight aligned pairs each, native beside ours (ten minutes).
	$(GO) test $(JOBS) -run '^$$' -bench . -benchtime 1x ./dra
	$(GO) test -p 1 -run '^$$' -bench AlignedPairs -benchtime 1x -timeout 30m ./scheduler/devices 2>/dev/null | tr '\t' '\n'

.PHONY: bench-controller
bench-controller: ## A thousand TrainJobs at once on embedded clusters, and what a reconcile costs (under ten minutes).
	@mkdir -p $(BENCH)/bin
	@$(GO) build $(JOBS) -ldflags "$(LDFLAGS)" -o $(BENCH)/bin/bench-controller ./simulator/cmd/bench-controller
	@$(BENCH)/bin/bench-controller -dir $(BENCH)

.PHONY: bench-status
bench-status: ## 1,000, 4,000 and 10,000 TrainJobs that report to the status server every five seconds (half an hour).
	@mkdir -p $(BENCH)/bin
	@$(GO) build $(JOBS) -ldflags "$(LDFLAGS)" -o $(BENCH)/bin/bench-status ./simulator/cmd/bench-status
	@$(BENCH)/bin/bench-status -dir $(BENCH)

.PHONY: bench-failover
bench-failover: ## The time without a binding when the leading scheduler stops, is killed or gets no answer, on 5,000 nodes (ten minutes).
	@mkdir -p $(BENCH)/bin
	@$(GO) build $(JOBS) -ldflags "$(LDFLAGS)" -o $(BENCH)/bin/bench-failover ./simulator/cmd/bench-failover
	@$(BENCH)/bin/bench-failover -dir $(BENCH)

# What bench-recovery adds: -ranks 250 -losses 5 takes three minutes.
RECOVERY ?=

.PHONY: bench-recovery
bench-recovery: ## How long a job of 250 and 2,500 nodes is without a rank whose node is lost, and the scheduler's share up to 25,000 (half an hour).
	@mkdir -p $(BENCH)/bin
	@$(GO) build $(JOBS) -ldflags "$(LDFLAGS)" -o $(BENCH)/bin/bench-recovery ./simulator/cmd/bench-recovery
	@$(BENCH)/bin/bench-recovery -dir $(BENCH) $(RECOVERY)
	$(GO) test -p 1 -run '^$$' -bench Replacement -benchtime 1x -timeout 30m ./scheduler/gangplacement 2>/dev/null

.PHONY: bench-gangapi
bench-gangapi: ## A gang of a thousand bound and a hundred told why they wait, native beside custom resources (ten minutes).
	@mkdir -p $(BENCH)/bin
	@$(GO) build $(JOBS) -ldflags "$(LDFLAGS)" -o $(BENCH)/bin/bench-gangapi ./simulator/cmd/bench-gangapi
	@$(BENCH)/bin/bench-gangapi -dir $(BENCH)

# What make benchmarks adds: -only COMPARISON, -seeds 3, -quick, -found, -progress plain.
BENCHMARK ?=

.PHONY: benchmarks
benchmarks: ## Play the comparisons of the benchmark in virtual time and write docs/benchmarks.md (hours; goes on where it was interrupted).
	@mkdir -p $(BENCH)/bin
	@$(GO) build $(JOBS) -buildvcs=auto -o $(BENCH)/bin/benchmarks ./simulator/cmd/benchmarks
	@GOGC=400 $(BENCH)/bin/benchmarks $(BENCHMARK)

.PHONY: benchmarks-quick
benchmarks-quick: ## The same comparisons with the first jobs and one seed, into out/ (minutes).
	@$(MAKE) --no-print-directory benchmarks BENCHMARK="-quick -dir out/quick -cards= -out out/quick/benchmarks.md -progress none"

# What make gates adds: -rewrite commits what is achieved now.
GATES ?=

.PHONY: gates
gates: ## Eight small contended comparisons against committed results, with the differences that a change makes (a quarter of a minute).
	$(GO) test $(JOBS) -count=1 -v -run TestGates ./simulator/run/gates $(if $(GATES),-args $(GATES))

.PHONY: bench-sim
bench-sim: $(BIN)/benchstat ## How fast the engines replay, what 100,000 jobs take, and how that grows: medians of RUNS= (ten minutes).
	@mkdir -p $(BENCH)
	$(GO) test $(JOBS) -run '^$$' -bench . -benchtime 1x -count $(RUNS) -timeout 60m ./simulator/engine/... ./simulator/score/measure | \
		tee $(BENCH)/sim.txt
	$(BIN)/benchstat $(BENCH)/sim.txt

.PHONY: lint
lint: $(BIN)/golangci-lint-$(GOLANGCI_VERSION) ## Check the house rules.
	$< config verify
	$< run --concurrency 2 ./...

.PHONY: pure
pure: ## Fail if a package that has to do without Kubernetes depends on k8s.io, however far down.
	@for package in $(PURE_PACKAGES); do \
		deps=$$($(GO) list -deps $$package) || exit 1; \
		if found=$$(grep -m 1 'k8s\.io/' <<< "$$deps"); then \
			echo "pure: $$package depends on $$found; move what needs it to an importer or to the caller" >&2; exit 1; fi; \
	done

# The check of the language holds all rooms but these two: scripts whose text is in the ConfigMaps of running jobs, and a tie rule that
# committed results carry.
PROSE_LATER := controller/framework simulator/policy/schedulers
PROSE := README.md docs dra manifests scheduler topology \
	$(filter-out $(PROSE_LATER) simulator/policy,$(wildcard controller/* simulator/* simulator/policy/*)) \
	$(wildcard controller/framework/*.go)

.PHONY: prose
prose: ## Fail if comments, messages or pages use phrases that have to be read twice.
	@$(GO) run $(JOBS) ./simulator/cmd/prose $(PROSE)

.PHONY: fmt
fmt: $(BIN)/golangci-lint-$(GOLANGCI_VERSION) ## Format the code.
	$< fmt

.PHONY: generate
generate: $(BIN)/controller-gen-$(CONTROLLER_GEN_VERSION) ## Make the generated files: deep copies, CRDs, the reference of annotations.
	$(MAKE) -C controller/api generate CONTROLLER_GEN=$< GO=$(GO)
	$(GO) run $(JOBS) ./controller/cmd/annotations > docs/annotations.md

.PHONY: pages
pages: ## Write outputs of commands, references and pictures into docs/ and the README (a minute).
	$(GO) test $(JOBS) -count=1 ./simulator/checks/docs -args -rewrite

# The manual as a site, by MkDocs Material in an environment of its own (Python 3.10 with venv, PyPI).
SITE := out/site

.PHONY: docs
docs: $(SITE)/ready ## Build the manual as a site into out/site/html, which needs no network; broken links fail.
	@NO_MKDOCS_2_WARNING=1 $(SITE)/env/bin/mkdocs build --quiet --clean
	@echo "out/site/html/index.html"

$(SITE)/ready: docs/.site/requirements.txt
	@rm -rf $(SITE)/env && mkdir -p $(SITE) && python3 -m venv $(SITE)/env
	@$(SITE)/env/bin/pip install -q --disable-pip-version-check -r $< && touch $@

# What Kubeflow Trainer itself makes of the planner's cases. It needs an older Kubernetes, and so a module of its own.
CASES := controller/plan/testdata
FOLD := $(GO) run $(JOBS) ./controller/cmd/cases

.PHONY: conformance
conformance: $(BIN)/conformance ## Fail if Kubeflow Trainer answers the planner's cases otherwise than is committed.
	@have=$$(mktemp -d) && new=$$(mktemp -d) && trap 'rm -rf "$$have" "$$new"' EXIT && $(FOLD) unpack $(CASES) "$$have" && \
	$< -cases "$$have" -out "$$new" && \
	diff -r -x 'want*' -x runtime.yaml -x trainjob.yaml -x options.yaml -x cluster.yaml "$$have" "$$new" || \
		{ echo "conformance: upstream's answers differ; see what make generate-conformance changes" >&2; exit 1; }

.PHONY: generate-conformance
generate-conformance: $(BIN)/conformance ## Ask Kubeflow Trainer about the planner's cases and write its answers there.
	@all=$$(mktemp -d) && trap 'rm -rf "$$all"' EXIT && $(FOLD) unpack $(CASES) "$$all" && \
	$< -cases "$$all" -out "$$all" && $(FOLD) take-answers $(CASES) "$$all"

.PHONY: $(BIN)/conformance
$(BIN)/conformance:
	@echo "building Kubeflow Trainer's planner (two minutes once)"
	@cd controller/conformance && $(GO) build -p 1 -o $@ ./cmd/conformance

# Where Kueue itself would put podsets, at random: what our policy of that name is held to. A module of its own for the same reason.
KUEUE_GOLDEN := simulator/policy/baseline/testdata/kueue.json.gz

.PHONY: conformance-kueue
conformance-kueue: $(BIN)/conformance-kueue ## Fail if Kueue answers questions about placements otherwise than is committed.
	@new=$$(mktemp) && trap 'rm -f "$$new"' EXIT && $< -out "$$new" && cmp $(KUEUE_GOLDEN) "$$new" || \
		{ echo "conformance-kueue: Kueue's answers differ; see what make generate-kueue changes" >&2; exit 1; }

.PHONY: generate-kueue
generate-kueue: $(BIN)/conformance-kueue ## Ask Kueue where it would put podsets and write its answers there.
	@mkdir -p $(dir $(KUEUE_GOLDEN))
	$< -out $(KUEUE_GOLDEN)

.PHONY: $(BIN)/conformance-kueue
$(BIN)/conformance-kueue:
	@echo "building Kueue's placement (three minutes once)"
	@cd simulator/policy/baseline/conformance && $(GO) build -p 1 -tags exclude_scheduler_library -o $@ ./cmd/conformance-kueue

.PHONY: verify
verify: ## Fail if generated files or go.mod are stale, or a house rule is broken.
	@before=$$(cat go.mod go.sum $(GENERATED) | sha256sum); \
	$(MAKE) --no-print-directory generate && $(GO) mod tidy || exit 1; \
	after=$$(cat go.mod go.sum $(GENERATED) | sha256sum); \
	if [ "$$before" != "$$after" ]; then git status --short; \
		echo "verify: generated files or go.mod were stale; commit what make generate and go mod tidy wrote" >&2; exit 1; fi
	@$(MAKE) --no-print-directory pure prose lint

.PHONY: clean
clean: ## Remove what was built, and the default state directory.
	rm -rf $(BIN) $(BENCH)/bin .lockstep

$(BIN)/golangci-lint-$(GOLANGCI_VERSION):
	GOBIN=$(BIN) $(GO) install $(JOBS) github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(BIN)/golangci-lint $@

$(BIN)/controller-gen-$(CONTROLLER_GEN_VERSION):
	GOBIN=$(BIN) $(GO) install $(JOBS) sigs.k8s.io/controller-tools/cmd/controller-gen@$(CONTROLLER_GEN_VERSION)
	mv $(BIN)/controller-gen $@

$(BIN)/kubeflow-trainer/%/trainer-controller-manager:
	@echo "building Kubeflow Trainer $* (two minutes once)"
	@GOBIN=$(@D) $(GO) install $(JOBS) github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager@$*

$(BIN)/kubectl: $(wildcard simulator/live/cluster/kubectl/*)
	@echo "building kubectl (a minute once)"
	@cd simulator/live/cluster/kubectl && $(GO) build $(JOBS) -o $@ .

$(BIN)/benchstat:
	GOBIN=$(BIN) $(GO) install golang.org/x/perf/cmd/benchstat@$(BENCHSTAT_VERSION)
