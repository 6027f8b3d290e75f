package integration_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/integration/rights"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// record returns the file to which package rights holds the roles: one file for each API of gangs.
func record() string {
	if offered() == probe.Resources {
		return "rights/testdata/requests-resources.txt"
	}
	return "rights/testdata/requests.txt"
}

// requestsFlag enables a comparison of this run's API requests with the record.
func requestsFlag() *string {
	return flag.String(
		"requests",
		"",
		"audit what Lockstep asks of the API server in all tests, and check or write the record of the mode",
	)
}

// compareRequests fails if a request of the record is not made any more, or writes the record anew.
func compareRequests(what string) func(testcluster.Cluster) error {
	if what == "" {
		return nil
	}
	return func(s testcluster.Cluster) error {
		allowed, err := rights.Shipped()
		if err != nil {
			return err
		}
		log, err := os.Open(s.AuditLog())
		if err != nil {
			return err
		}
		defer log.Close()
		made, err := rights.Audited(log, allowed, render.Default().Namespace)
		if err != nil {
			return err
		}
		if what == "write" {
			return os.WriteFile(record(), []byte(rights.Format(made)), 0o600)
		}
		return missing(made)
	}
}

// missing returns an error for the requests of the record that were not made.
func missing(made []rights.Request) error {
	content, err := os.ReadFile(record())
	if err != nil {
		return err
	}
	recorded, err := rights.Parse(string(content))
	if err != nil {
		return err
	}
	var gone []string
	for _, request := range recorded {
		if !slices.Contains(made, request) {
			gone = append(gone, "  "+request.String())
		}
	}
	if len(gone) > 0 {
		return fmt.Errorf(
			"%s: no test makes these requests any more; take them out, and the rights that only they need:\n%s",
			record(), strings.Join(gone, "\n"),
		)
	}
	return nil
}
