package manifests

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// Installation is where the controller runs, and as whom. The files are written for Default.
type Installation struct {
	// Namespace is that of the controller: of its lease, its certificate and the frozen state of jobs.
	Namespace string
	// Account is the controller's ServiceAccount in that namespace.
	Account string
	// Namespaces are those whose TrainJobs are the controller's; empty for all.
	Namespaces []string
	// TakeOver is the namespace of the Kubeflow Trainer from which the controller takes over; empty for none.
	TakeOver string
	// GangAPI is where gangs are kept, if that is known: then there are no rights for the other API. Empty leaves it to the first start.
	GangAPI gangapi.API
	// Flags are further flags of the controller, such as "--gang-default=on".
	Flags []string
}

// Default is the installation for which the files are written.
func Default() Installation {
	return Installation{Namespace: "lockstep-system", Account: "lockstep-controller"}
}

// User is the name by which the API server knows the controller.
func (i Installation) User() string {
	return "system:serviceaccount:" + i.Namespace + ":" + i.Account
}

// Validate says which of the names cannot be one, or cannot be beside another; nil if all can.
func (i Installation) Validate() error {
	if faults := validation.ValidateNamespaceName(i.Namespace, false); len(faults) > 0 {
		return fmt.Errorf("namespace %q: %s", i.Namespace, strings.Join(faults, "; "))
	}
	if faults := validation.ValidateServiceAccountName(i.Account, false); len(faults) > 0 {
		return fmt.Errorf("account %q: %s", i.Account, strings.Join(faults, "; "))
	}
	if faults := validation.ValidateNamespaceName(i.TakeOver, false); i.TakeOver != "" && len(faults) > 0 {
		return fmt.Errorf("take-over %q: %s", i.TakeOver, strings.Join(faults, "; "))
	}
	if i.TakeOver != "" && len(i.Namespaces) > 0 {
		return fmt.Errorf(
			"take-over %s: must not be with namespaces: nobody would handle the TrainJobs of others",
			i.TakeOver,
		)
	}
	for n, name := range i.Namespaces {
		if faults := validation.ValidateNamespaceName(name, false); len(faults) > 0 {
			return fmt.Errorf("namespaces: %q: %s", name, strings.Join(faults, "; "))
		}
		if slices.Contains(i.Namespaces[:n], name) {
			return fmt.Errorf("namespaces: %s is there twice", name)
		}
	}
	return nil
}

// Render returns a manifest as it is to be applied for an installation: its objects in that namespace, its rights for that account, its
// policies by that user, and its Deployment with the flags that follow. With Namespaces, rights and webhooks are for those only. Roles and
// policies keep their names. The account stands in the files as the name of a ServiceAccount, as a subject of that kind, as that of pods,
// and as a user; a test holds the files to that.
func Render(content []byte, installation Installation) ([]byte, error) {
	written := Default()
	account := func(before, after string) []string {
		return []string{before + written.Account + after, before + installation.Account + after}
	}
	var pairs []string
	pairs = append(pairs, written.User(), installation.User())
	pairs = append(pairs, account("kind: ServiceAccount\n  name: ", "\n")...)
	pairs = append(pairs, account("kind: ServiceAccount\nmetadata:\n  name: ", "\n")...)
	pairs = append(pairs, account("serviceAccountName: ", "\n")...)
	pairs = append(pairs, written.Namespace, installation.Namespace)
	named := strings.NewReplacer(pairs...).Replace(string(content))
	if len(installation.arguments()) == 0 {
		return []byte(named), nil
	}
	return installation.adapt(named)
}

// arguments are the flags that the controller gets beside those of its Deployment.
func (i Installation) arguments() []string {
	var arguments []string
	if len(i.Namespaces) > 0 {
		arguments = append(arguments, "--namespaces="+strings.Join(i.Namespaces, ","))
	}
	if i.TakeOver != "" {
		arguments = append(arguments, "--take-over="+i.TakeOver)
	}
	if i.GangAPI != "" {
		arguments = append(arguments, "--gang-api="+string(i.GangAPI))
	}
	return append(arguments, i.Flags...)
}
