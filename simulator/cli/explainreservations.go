package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/lockstep-project/lockstep/scheduler/reservations"
	"github.com/lockstep-project/lockstep/simulator/explain"
	"github.com/lockstep-project/lockstep/simulator/explain/live"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// explainReservations lists the reservations of the scheduler that runs.
func explainReservations(ctx context.Context, env Environment, options explainOptions) error {
	if options.snapshot != "" || options.withJob != "" {
		return &badinput.Error{
			Where: "lockstep explain reservations", What: "only a running scheduler knows its reservations",
			Mend: "leave out --snapshot and --with-job",
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = options.kubeconfig
	cluster, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return &badinput.Error{Where: "kubeconfig", What: err.Error(), Mend: "name one with --kubeconfig"}
	}
	namespace := cmp.Or(options.namespace, live.Namespace)
	var list reservations.List
	if options.schedulerURL != "" {
		list, err = live.ReservationsAt(ctx, cluster, options.schedulerURL)
	} else {
		list, err = live.Reservations(ctx, cluster, namespace)
	}
	if err != nil {
		return &badinput.Error{
			Where: "lockstep explain reservations", What: err.Error(),
			Mend: "ask with a user who may create pods/portforward in " + namespace + " and get the URL /configz, " +
				"name another namespace of Lockstep with -n, or a scheduler on this machine with --scheduler-url",
		}
	}
	if options.output == "json" {
		text, err := json.Marshal(list)
		if err != nil {
			return fmt.Errorf("printing reservations: %w", err)
		}
		if _, err := fmt.Fprintln(env.Out, string(text)); err != nil {
			return fmt.Errorf("printing reservations: %w", err)
		}
		return nil
	}
	return explain.WriteReservations(env.Out, list, env.Clock.Now())
}
