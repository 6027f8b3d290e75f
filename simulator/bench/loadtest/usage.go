package loadtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Usage is that of the controller since it started, by its metrics.
type Usage struct {
	// Calls are requests to the API server, by method; watches count once each.
	Calls map[string]float64 `json:"calls"`
	// Reports are attempts to write a report into a TrainJob, by result.
	Reports map[string]float64 `json:"reports,omitempty"`
	// Reconciles are reconciliations of TrainJobs, and Seconds their total time.
	Reconciles float64 `json:"reconciles"`
	Seconds    float64 `json:"seconds"`
	// CPU is processor time of the whole process in seconds, its webhooks and caches included.
	CPU float64 `json:"cpu"`
	// Memory is the resident set in bytes.
	Memory float64 `json:"memory"`
}

// Scrape returns a function that reads the usage from a metrics endpoint.
func Scrape(client *http.Client, url string) func(context.Context) (Usage, error) {
	return func(ctx context.Context) (Usage, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return Usage{}, fmt.Errorf("reading the controller's metrics: %w", err)
		}
		response, err := client.Do(request)
		if err != nil {
			return Usage{}, fmt.Errorf("reading the controller's metrics: %w", err)
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return Usage{}, fmt.Errorf("reading the controller's metrics: %w", err)
		}
		if response.StatusCode != http.StatusOK {
			return Usage{}, fmt.Errorf("reading the controller's metrics: %s: %s", response.Status, text)
		}
		return ReadUsage(string(text))
	}
}

// ReadUsage reads the usage from metrics in Prometheus' text format.
func ReadUsage(text string) (Usage, error) {
	usage := Usage{Calls: map[string]float64{}, Reports: map[string]float64{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name := line[:max(0, strings.IndexAny(line, "{ "))]
		into := field(&usage, name, line)
		if into == nil {
			continue
		}
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return Usage{}, fmt.Errorf("reading the controller's metrics: %q: %w", line, err)
		}
		switch name {
		case callsMetric:
			usage.Calls[label(line, "method")] += value
		case reportsMetric:
			usage.Reports[label(line, "result")] += value
		default:
			*into += value
		}
	}
	if usage.CPU == 0 || usage.Reconciles == 0 && usage.Seconds != 0 {
		return Usage{}, errNoUsage
	}
	return usage, nil
}

// errNoUsage is the answer to metrics of something else.
var errNoUsage = errors.New("reading the controller's metrics: they do not tell its usage")

const (
	callsMetric   = "rest_client_requests_total"
	reportsMetric = "lockstep_status_server_writes_total"
)

// field returns the field for a metric's value; nil for a metric that is not used.
func field(u *Usage, name, line string) *float64 {
	switch name {
	case callsMetric, reportsMetric:
		return new(float64)
	case "process_cpu_seconds_total":
		return &u.CPU
	case "process_resident_memory_bytes":
		return &u.Memory
	case "controller_runtime_reconcile_time_seconds_count":
		if label(line, "controller") == "trainjob" {
			return &u.Reconciles
		}
	case "controller_runtime_reconcile_time_seconds_sum":
		if label(line, "controller") == "trainjob" {
			return &u.Seconds
		}
	}
	return nil
}

func label(line, name string) string {
	_, rest, _ := strings.Cut(line, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// Since returns the usage between two readings; memory is the later one's.
func (u Usage) Since(earlier Usage) Usage {
	return Usage{
		Calls: less(u.Calls, earlier.Calls), Reports: less(u.Reports, earlier.Reports),
		Reconciles: u.Reconciles - earlier.Reconciles, Seconds: u.Seconds - earlier.Seconds,
		CPU: u.CPU - earlier.CPU, Memory: u.Memory,
	}
}

// less subtracts numbers by name.
func less(later, earlier map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for name, n := range later {
		out[name] = n - earlier[name]
	}
	return out
}

// Total is all calls.
func (u Usage) Total() float64 {
	total := 0.0
	for _, n := range u.Calls {
		total += n
	}
	return total
}

// quiet waits until the controller has nothing to do: no TrainJob was reconciled during a pause.
func (f Field) quiet(ctx context.Context) (Usage, error) {
	last, err := f.Usage(ctx)
	if err != nil {
		return Usage{}, err
	}
	err = wait.PollUntilContextTimeout(ctx, f.Pause, 15*time.Minute, false, func(ctx context.Context) (bool, error) {
		now, err := f.Usage(ctx)
		still := now.Reconciles == last.Reconciles
		last = now
		return still, err
	})
	if err != nil {
		return Usage{}, fmt.Errorf("waiting until the controller has nothing to do: %w", err)
	}
	return last, nil
}
