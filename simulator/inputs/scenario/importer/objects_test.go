package importer_test

import (
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
)

func TestObjectsOf_ScenarioOfAnotherPackage(t *testing.T) {
	for _, s := range []*scenario.Scenario{{}, {Objects: "nodes"}} {
		if objects, err := importer.ObjectsOf(s); err == nil || objects != nil {
			t.Errorf("%v has the objects %v, error %v", s.Objects, objects, err)
		}
	}
}
