package framework_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
)

// TestAll_ListsEveryFramework reads the package: a type with a Contribute method that is not in All is never used.
func TestAll_ListsEveryFramework(t *testing.T) {
	var declared, listed []string
	for _, file := range parse(t) {
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			switch {
			case function.Name.Name == "Contribute" && function.Recv != nil:
				if name, is := function.Recv.List[0].Type.(*ast.Ident); is {
					declared = append(declared, name.Name)
				}
			case function.Name.Name == "All" && function.Recv == nil:
				ast.Inspect(function.Body, func(node ast.Node) bool {
					if literal, is := node.(*ast.CompositeLit); is {
						if name, is := literal.Type.(*ast.Ident); is {
							listed = append(listed, name.Name)
						}
					}
					return true
				})
			}
		}
	}
	slices.Sort(declared)
	if listed[len(listed)-1] != "Plain" {
		t.Errorf("All ends with %s, want Plain, which selects everything", listed[len(listed)-1])
	}
	slices.Sort(listed)
	if !slices.Equal(declared, listed) {
		t.Errorf("declared %v, listed %v", declared, listed)
	}
}

func TestAll_NamesDiffer(t *testing.T) {
	var names []string
	for _, f := range framework.All() {
		if slices.Contains(names, f.Name()) {
			t.Errorf("two frameworks are called %s", f.Name())
		}
		names = append(names, f.Name())
	}
}

func TestSelect(t *testing.T) {
	torch := trainerv1alpha1.MLPolicySource{Torch: &trainerv1alpha1.TorchMLPolicySource{}}
	for name, test := range map[string]struct {
		policy  trainerv1alpha1.MLPolicySource
		command []string
		want    string
	}{
		"none":               {want: "plain"},
		"torch":              {policy: torch, want: "torch"},
		"tune but not run":   {policy: torch, command: []string{"tune", "ls"}, want: "torch"},
		"tune run with more": {policy: torch, command: []string{"tune", "run", "x"}, want: "torch"},
		"tune run elsewhere": {command: []string{"tune", "run"}, want: "plain"},
		"jax":                {policy: trainerv1alpha1.MLPolicySource{JAX: &trainerv1alpha1.JAXMLPolicySource{}}, want: "jax"},
		"xgboost": {
			policy: trainerv1alpha1.MLPolicySource{XGBoost: &trainerv1alpha1.XGBoostMLPolicySource{}}, want: "xgboost",
		},
		"torchtune": {policy: torch, command: []string{"tune", "run"}, want: "torchtune"},
		"mpi":       {policy: trainerv1alpha1.MLPolicySource{MPI: &trainerv1alpha1.MPIMLPolicySource{}}, want: "mpi"},
		"flux":      {policy: trainerv1alpha1.MLPolicySource{Flux: &trainerv1alpha1.FluxMLPolicySource{}}, want: "flux"},
	} {
		t.Run(name, func(t *testing.T) {
			if chosen := framework.Select(test.policy, test.command); chosen.Name() != test.want {
				t.Errorf("got %s, want %s", chosen.Name(), test.want)
			}
		})
	}
}

func parse(t *testing.T) []*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// A hostfile that no ConfigMap holds would be refused by the API server again and again.
func TestMPI_RefusesOversizedHostfile(t *testing.T) {
	input := framework.Input{Job: "train", Subdomain: "train", Nodes: 60_000, NodesGiven: true, Roles: []framework.Role{
		{Name: "node", Replicas: 1, Pods: 60_000},
	}}
	input.Policy.MPI = &trainerv1alpha1.MPIMLPolicySource{}
	faults := framework.MPI{}.Validate(input, field.NewPath("spec"))
	if len(faults) != 1 || !strings.Contains(faults[0].Error(), "a ConfigMap holds 1048576") {
		t.Errorf("faults %v, want one about the hostfile", faults)
	}
	input.Roles[0].Pods = 20_000
	if faults = (framework.MPI{}).Validate(input, field.NewPath("spec")); len(faults) != 0 {
		t.Errorf("faults %v of a hostfile that fits", faults)
	}
}
