package docs_test

import (
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/controller/metrics"
	"github.com/lockstep-project/lockstep/controller/statusserver"
)

// metric is a row of the reference.
type metric struct {
	name, kind, help string
	labels           []string
}

// cardinalities describes the number of values of each label.
func cardinalities() map[string]string {
	return map[string]string{
		"namespace":  "namespaces with TrainJobs or reservations",
		"runtime":    "runtimes that jobs name, and `unknown`",
		"framework":  "7 frameworks, and `unknown`",
		"reason":     "reasons of conditions, or of reservations: fewer than 10",
		"result":     "at most 6",
		"controller": "1",
		"phase":      "4",
		"state":      "5",
		"mode":       "3, one of them set",
		"rule":       "10: the rules of `scheduler/gangplacement/observe.go`",
		"level":      "levels of the fleet, node and `other`: fewer than 10",
		"outcome":    "3",
		"name":       "gangs with a reservation: at most the reservations that the queue grants",
		"open":       "2",
		"code":       "HTTP codes of the status server: fewer than 15",
		"proof":      "2",
	}
}

func metricsPage(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	out.WriteString(
		generated(
			"Metrics",
			"scheduler/metrics, scheduler/reservations, scheduler/app, controller/metrics and controller/statusserver",
			"Series of Lockstep's own; kube-scheduler's and controller-runtime's are at the same endpoints. The unit is the end of the name.",
		),
	)
	section := func(title string, rows []metric) {
		_, _ = fmt.Fprintf(&out, "## %s\n\n| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n", title)
		for _, m := range rows {
			_, _ = fmt.Fprintf(
				&out,
				"| `%s` | %s | %s | %s | %s |\n",
				m.name,
				m.kind,
				unit(m),
				strings.Join(m.labels, ", "),
				cell(m.help),
			)
		}
		out.WriteString("\n")
	}
	scheduler, controller := schedulerMetrics(t), controllerMetrics(t)
	hasNoOthers(t)
	section("lockstep-scheduler", scheduler)
	section("lockstep-controller", controller)
	out.WriteString(
		"## Cardinality\n\nThe series of a metric are at most the product of its labels' values; a histogram has one more for each bucket.\n\n",
	)
	out.WriteString("| label | values |\n|---|---|\n")
	var labels []string
	for _, m := range slices.Concat(scheduler, controller) {
		labels = append(labels, m.labels...)
	}
	slices.Sort(labels)
	for _, label := range slices.Compact(labels) {
		values, known := cardinalities()[label]
		if !known {
			t.Errorf("cardinalities does not say how many values label %s has", label)
		}
		_, _ = fmt.Fprintf(&out, "| `%s` | %s |\n", label, values)
	}
	return out.String()
}

// unit returns the unit of a metric, by its name.
func unit(m metric) string {
	name := strings.TrimSuffix(m.name, "_total")
	for suffix, unit := range map[string]string{
		"accelerator_seconds": "accelerator-seconds", "device_seconds": "accelerator-seconds", "accelerator_hours": "accelerator-hours", "_ratio": "1",
	} {
		if strings.HasSuffix(name, suffix) {
			return unit
		}
	}
	if strings.HasSuffix(name, "_seconds") {
		return "seconds"
	}
	return "count"
}

// recorder stores the collectors that are registered on it.
type recorder struct{ collectors []prometheus.Collector }

func (r *recorder) Register(c prometheus.Collector) error {
	r.collectors = append(r.collectors, c)
	return nil
}

func (r *recorder) MustRegister(all ...prometheus.Collector) {
	r.collectors = append(r.collectors, all...)
}

func (r *recorder) Unregister(prometheus.Collector) bool { return false }

func controllerMetrics(t *testing.T) []metric {
	t.Helper()
	var r recorder
	metrics.New(&r)
	statusserver.New(statusserver.Options{
		Registry: &r, Clock: clock.RealClock{}, QueriesPerSecond: 1, Burst: 1,
	})
	r.MustRegister(metrics.NewCensus(func() map[metrics.Population]int { return nil }))
	described := regexp.MustCompile(
		`fqName: "([^"]*)", help: "(.*?)"(?:, unit: "[^"]*")?, constLabels: \{[^}]*\}, variableLabels: \{([^}]*)\}`,
	)
	var rows []metric
	for _, c := range r.collectors {
		descriptions := make(chan *prometheus.Desc, 16)
		c.Describe(descriptions)
		close(descriptions)
		for d := range descriptions {
			found := described.FindStringSubmatch(d.String())
			if found == nil {
				t.Fatalf("the description %s is not understood", d)
			}
			help, err := strconv.Unquote(`"` + found[2] + `"`)
			if err != nil {
				help = found[2]
			}
			m := metric{name: found[1], kind: kindOf(c), help: help}
			if found[3] != "" {
				m.labels = strings.Split(found[3], ",")
			}
			rows = append(rows, m)
		}
	}
	slices.SortFunc(rows, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	return rows
}

func kindOf(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	default:
		return "gauge"
	}
}

// schedulerMetrics reads the scheduler's metrics from its source: kube-scheduler's registry lists no metric before it
// has a value.
func schedulerMetrics(t *testing.T) []metric {
	t.Helper()
	var rows []metric
	for _, folder := range []string{"scheduler/metrics", "scheduler/reservations", "scheduler/app"} {
		for _, file := range parsed(t, folder) {
			ast.Inspect(file, func(node ast.Node) bool {
				call, ok := node.(*ast.CallExpr)
				if !ok {
					return true
				}
				m, ok := declared(file, call)
				if ok {
					rows = append(rows, m)
				}
				return !ok
			})
		}
	}
	slices.SortFunc(rows, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	const least = 24
	if len(rows) < least {
		t.Errorf("%d metrics of the scheduler are found, want %d or more", len(rows), least)
	}
	return rows
}

// declared reads a metric from the call that makes it.
func declared(file *ast.File, call *ast.CallExpr) (metric, bool) {
	kind, known := map[string]string{
		"histogram": "histogram", "histogramBy": "histogram", "NewCounterVec": "counter", "NewCounter": "counter",
		"NewGaugeVec": "gauge", "NewGauge": "gauge", "NewDesc": "gauge",
	}[called(call)]
	words := literals(file, call)
	if !known || len(words) < 2 {
		return metric{}, false
	}
	if called(call) == "histogramBy" { // the label is the first argument
		words = append(words[1:3], words[0])
	}
	m := metric{name: words[0], kind: kind, help: words[1], labels: words[2:]}
	if !strings.HasPrefix(m.name, "lockstep_") {
		m.name = "lockstep_scheduler_" + m.name
	}
	return m, true
}

func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	default:
		return ""
	}
}

// literals returns the texts in a call, those of local slices that it names included, in order and without empty ones.
func literals(file *ast.File, call *ast.CallExpr) []string {
	var words []string
	for _, argument := range call.Args {
		ast.Inspect(argument, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.BasicLit:
				if word, err := strconv.Unquote(n.Value); err == nil && word != "" {
					words = append(words, word)
				}
			case *ast.Ident:
				words = append(words, local(file, n.Name)...)
			}
			return true
		})
	}
	return words
}

// local returns the texts of a slice that a function of the file declares under that name.
func local(file *ast.File, name string) []string {
	var words []string
	ast.Inspect(file, func(node ast.Node) bool {
		assigned, ok := node.(*ast.AssignStmt)
		if !ok || len(assigned.Lhs) != 1 {
			return true
		}
		left, ok := assigned.Lhs[0].(*ast.Ident)
		list, isList := assigned.Rhs[0].(*ast.CompositeLit)
		if !ok || !isList || left.Name != name {
			return true
		}
		for _, element := range list.Elts {
			if literal, ok := element.(*ast.BasicLit); ok {
				words = append(words, strings.Trim(literal.Value, `"`))
			}
		}
		return false
	})
	return words
}

// hasNoOthers fails for a metric that is declared where the reference does not look.
func hasNoOthers(t *testing.T) {
	t.Helper()
	known := []string{
		"scheduler/metrics",
		"scheduler/reservations",
		"scheduler/app",
		"controller/metrics",
		"controller/statusserver",
	}
	options := regexp.MustCompile(`\b(?:prometheus|metrics)\.(?:(?:Counter|Gauge|Histogram|Summary)Opts\{|NewDesc\()`)
	for _, room := range []string{"scheduler", "controller", "dra", "manifests"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			folder := filepath.Dir(strings.TrimPrefix(path, root+"/"))
			if options.Match(content) && !slices.Contains(known, folder) {
				t.Errorf("%s declares metrics, and the reference does not have them: add it to TestReference", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
