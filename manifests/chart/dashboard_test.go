package chart_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDashboard_MetricsExist holds each query to the reference of metrics, which is generated from the code.
func TestDashboard_MetricsExist(t *testing.T) {
	text, err := os.ReadFile("dashboards/lockstep.json")
	if err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile("../../docs/generated/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	metric, seen := regexp.MustCompile(`(lockstep|kubeflow_trainer)_\w+`), 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			names := metric.FindAllString(target.Expr, -1)
			if len(names) == 0 {
				t.Errorf("panel %s asks for no metric of ours: %s", panel.Title, target.Expr)
			}
			for _, name := range names {
				if seen++; !strings.Contains(string(reference), "| `"+strings.TrimSuffix(name, "_bucket")+"` |") {
					t.Errorf("panel %s: there is no metric %s", panel.Title, name)
				}
			}
		}
	}
	if seen < 15 {
		t.Errorf("the dashboard has %d queries", seen)
	}
}
