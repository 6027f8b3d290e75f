package migrate

import (
	"fmt"
	"slices"
	"strconv"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// runtimeFinalizer was put on runtimes by 2.2 and older; no controller would take it off.
const runtimeFinalizer = "trainer.kubeflow.org/resource-in-use"

// runtime migrates a TrainingRuntime or a ClusterTrainingRuntime of Kubeflow Trainer 2.0 or 2.1, which is read into the
// type of today. A runtime of today is returned unchanged.
func (p *page) runtime(into any) ([]map[string]any, error) {
	content := p.copyWithoutServer()
	p.dropFinalizer(content)
	if err := p.torchProcesses(content); err != nil {
		return nil, err
	}
	if err := p.mpiPolicy(content); err != nil {
		return nil, err
	}
	if err := p.elasticPolicy(content); err != nil {
		return nil, err
	}
	if err := p.fill(content, nil, into); err != nil {
		return nil, err
	}
	return []map[string]any{content}, nil
}

func (p *page) dropFinalizer(content map[string]any) {
	where := at("metadata", "finalizers")
	finalizers, _ := valueAt(content, where).([]any)
	i := slices.Index(finalizers, any(runtimeFinalizer))
	if i < 0 {
		return
	}
	take(content, where)
	if rest := slices.Delete(finalizers, i, i+1); len(rest) > 0 {
		metadata, _ := content["metadata"].(map[string]any)
		metadata["finalizers"] = rest
	}
	p.note(where.child(i), runtimeFinalizer+" is left out: runtimes are not guarded any more")
}

// torchProcesses drops the runtime's number of processes per node, which only a job can set now.
func (p *page) torchProcesses(content map[string]any) error {
	where := at("spec", "mlPolicy", "torch", "numProcPerNode")
	said := take(content, where)
	if said == nil {
		return nil
	}
	number, err := p.processes(where, fmt.Sprint(said))
	if err != nil {
		return err
	}
	if number != nil {
		p.note(
			where,
			fmt.Sprintf("%d is left out: write spec.trainer.numProcPerNode: %d into the TrainJobs; without it the "+
				"controller counts the GPUs of a node, or its CPUs, itself", *number, *number),
		)
	}
	return nil
}

// mpiPolicy refuses implementations other than OpenMPI, and converts numProcPerNode from text to a number.
func (p *page) mpiPolicy(content map[string]any) error {
	where := at("spec", "mlPolicy", "mpi")
	policy, _ := valueAt(content, where).(map[string]any)
	implementation, _ := policy["mpiImplementation"].(string)
	if err := p.onlyOpenMPI(where.child("mpiImplementation"), implementation); err != nil {
		return err
	}
	word, isText := policy["numProcPerNode"].(string)
	if !isText {
		return nil
	}
	where = where.child("numProcPerNode")
	number, err := strconv.ParseInt(word, 10, 32)
	if err != nil || number < 1 {
		return p.bad(where, where.String()+" is "+strconv.Quote(word), "write a number above zero")
	}
	policy["numProcPerNode"] = number
	return nil
}

func (p *page) onlyOpenMPI(where path, implementation string) error {
	switch implementation {
	case "", string(trainerv1alpha1.MPIImplementationOpenMPI):
		return nil
	}
	return p.bad(where, "MPI of "+implementation+" is not supported, only OpenMPI",
		"build the image with OpenMPI and write mpiImplementation: OpenMPI")
}

// elasticPolicy replaces an elastic number of nodes by a fixed one, and retains the restarts.
func (p *page) elasticPolicy(content map[string]any) error {
	where := at("spec", "mlPolicy", "torch", "elasticPolicy")
	policy, isMap := take(content, where).(map[string]any)
	if !isMap {
		return nil
	}
	var said struct {
		MaxRestarts *int32 `json:"maxRestarts"`
		MinNodes    *int32 `json:"minNodes"`
		MaxNodes    *int32 `json:"maxNodes"`
		Metrics     []any  `json:"metrics"`
	}
	if err := p.fill(policy, where, &said); err != nil {
		return err
	}
	ml, _ := valueAt(content, at("spec", "mlPolicy")).(map[string]any)
	if said.MinNodes != nil && ml["numNodes"] == nil {
		ml["numNodes"] = int64(*said.MinNodes)
		p.note(where.child("minNodes"), "it is spec.mlPolicy.numNodes now: the number of nodes is fixed")
	} else if said.MinNodes != nil {
		p.note(where.child("minNodes"), "left out: the number of nodes is fixed, spec.mlPolicy.numNodes says it")
	}
	if said.MaxNodes != nil {
		p.note(where.child("maxNodes"), "left out: the number of nodes is fixed, spec.mlPolicy.numNodes says it")
	}
	if said.Metrics != nil {
		p.note(where.child("metrics"), "left out: nothing scales a job while it runs")
	}
	if said.MaxRestarts != nil {
		p.maxRestarts(content, where.child("maxRestarts"), *said.MaxRestarts)
	}
	return nil
}

// maxRestarts gives the JobSet the restarts of torchrun, unless the template has a number.
func (p *page) maxRestarts(content map[string]any, from path, restarts int32) {
	spec, isMap := valueAt(content, at("spec", "template", "spec")).(map[string]any)
	if !isMap {
		p.note(from, "left out: there is no JobSet template that could restart")
		return
	}
	policy, isMap := spec["failurePolicy"].(map[string]any)
	if !isMap {
		policy = map[string]any{}
		spec["failurePolicy"] = policy
	}
	if policy["maxRestarts"] != nil {
		p.note(from, "left out: spec.template.spec.failurePolicy.maxRestarts says how often")
		return
	}
	policy["maxRestarts"] = int64(restarts)
	p.note(
		from,
		"it is spec.template.spec.failurePolicy.maxRestarts now: the whole job restarts, not only its processes",
	)
}
