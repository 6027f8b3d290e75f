package trace_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

func TestReadPhilly_Rows(t *testing.T) {
	const text = `timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,32,66.0,11cb48
2017-10-08 07:01:54,2951.5,4,2951.0,6214e9
`
	got, err := trace.ReadPhilly(strings.NewReader(text), "philly.csv")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Jobs) != 2 || got.Synthetic || !strings.Contains(got.Source, "CC-BY-4.0") {
		t.Fatalf("%+v", got)
	}
	first, second := got.Jobs[0], got.Jobs[1]
	if first.Submit != 0 || first.Duration != 2951500*time.Millisecond || first.Tenant != "6214e9" ||
		first.Podsets[0] != (trace.Podset{Count: 1, GPUs: 4, CPU: 32_000, Memory: 256 << 30}) {
		t.Errorf("%+v", first)
	}
	if second.Submit != 24*time.Hour+time.Second || second.ID != "philly-000001" ||
		second.Podsets[0] != (trace.Podset{Count: 4, GPUs: 8, CPU: 64_000, Memory: 512 << 30}) {
		t.Errorf("%+v", second)
	}
}

// The list matches its SOURCE.md.
func TestPhilly_AsPublished(t *testing.T) {
	tr, err := trace.Open("philly", 0)
	if err != nil {
		t.Fatal(err)
	}
	nodes, tenants := map[int]int{}, map[string]int{}
	var durations []time.Duration
	var total, hours float64
	for _, j := range tr.Jobs {
		nodes[j.Pods()]++
		tenants[j.Tenant]++
		durations = append(durations, j.Duration)
		total += j.Duration.Seconds()
		hours += j.GPUHours()
	}
	slices.Sort(durations)
	want := map[int]int{1: 81958, 2: 206, 3: 7, 4: 67, 8: 6, 16: 3}
	for pods, jobs := range want {
		if nodes[pods] != jobs {
			t.Errorf("%d jobs of %d pods, want %d", nodes[pods], pods, jobs)
		}
	}
	if len(tr.Jobs) != 82247 || len(nodes) != len(want) || len(tenants) != 15 ||
		tenants["6214e9"]*100/len(tr.Jobs) < 49 {
		t.Errorf("%d jobs of %v pods and %d tenants", len(tr.Jobs), nodes, len(tenants))
	}
	// 12 GPUs are rounded up to two nodes, which is seven jobs.
	if mean := total / float64(len(tr.Jobs)); math.Abs(mean-13136) > 1 || math.Abs(hours/978078-1) > 0.002 {
		t.Errorf("they run %.0f s, and %.0f GPU hours", mean, hours)
	}
	if median := durations[len(durations)/2]; median != 1144*time.Second ||
		durations[len(durations)-1] != 4628226*time.Second {
		t.Errorf("median %s, longest %s", median, durations[len(durations)-1])
	}
	if last := tr.Jobs[len(tr.Jobs)-1]; tr.Jobs[0].Submit != 0 || last.Submit != 108*24*time.Hour+77490*time.Second {
		t.Errorf("from %s to %s", tr.Jobs[0].Submit, last.Submit)
	}
}

func TestReadPhilly_RefusesBadRows(t *testing.T) {
	const header = "timestamp,duration,num_gpus,cluster\n"
	for _, tc := range []struct{ text, want string }{
		{header, "p.csv: there is nothing below the column names; add a job"},
		{
			"timestamp,duration,cluster\n", "p.csv:1: there is no column num_gpus; the columns have to be named, and be at least " +
				"timestamp,duration,num_gpus,cluster",
		},
		{
			header + "9 Oct 2017,66.0,1,vc\n",
			`p.csv:2: timestamp is "9 Oct 2017"; write an instant such as 2017-10-09 07:01:55`,
		},
		{
			header + "0017-10-09 07:01:55,66.0,1,vc\n",
			`p.csv:2: timestamp is "0017-10-09 07:01:55"; write an instant such as 2017-10-09 07:01:55`,
		},
		{
			header + "2017-10-09 07:01:55,0,1,vc\n",
			`p.csv:2: duration is "0"; write a number of seconds above 0, such as 66.0`,
		},
		{
			header + "2017-10-09 07:01:55,NaN,1,vc\n",
			`p.csv:2: duration is "NaN"; write a number of seconds above 0, such as 66.0`,
		},
		{
			header + "2017-10-09 07:01:55,1e300,1,vc\n",
			`p.csv:2: duration is "1e300"; write a number of seconds above 0, such as 66.0`,
		},
		{
			header + "2017-10-09 07:01:55,66,1,vc\n2017-10-09 07:01:55,66,0,vc\n",
			"p.csv:3: the job asks for no GPU; set num_gpus to 1 or more, or remove the row",
		},
	} {
		_, err := trace.ReadPhilly(strings.NewReader(tc.text), "p.csv")
		if err == nil || err.Error() != tc.want || !badinput.Is(err) {
			t.Errorf("%q:\ngot  %v\nwant %s", tc.text, err, tc.want)
		}
	}
}
