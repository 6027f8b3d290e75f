//go:build schedperf

package measure_test

import (
	"fmt"
	"os"
	"testing"

	_ "k8s.io/component-base/logs/json/register" // scheduler_perf validates --logging-format against registered formats
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
)

func TestMain(m *testing.M) {
	if err := perf.InitTests(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
