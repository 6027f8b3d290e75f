package trace_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

const small = `{"trace": {"name": "nightly", "source": "us", "synthetic": true}}

{"event": {"at": "5h", "kind": "return", "nodes": ["n1"]}}
{"job": {"id": "b", "submit": "90s", "duration": "2h", "pods": [{"count": 1}]}}
{"job": {"id": "a", "tenant": "research", "submit": "90s", "duration": "1h0m0.25s", "pods": [{"count": 16, "gpus": 8, ` +
	`"cpuMilli": 64000, "memoryBytes": 549755813888}, {"count": 1}], "minCount": 12, "priority": -5, "preemptible": true, "grace": "5m", ` +
	`"required": "block", "preferred": "rack", "segment": {"size": 4, "level": "rack"}, "estimate": "3h", ` +
	`"endState": "failed"}}
{"job": {"id": "z", "duration": "1ms", "pods": [{"count": 1}]}}
{"event": {"at": "1h", "kind": "drain", "nodes": ["n1", "n2"]}}
{"event": {"at": "1h", "kind": "fail", "nodes": ["n1"]}}
`

// Every field arrives where it belongs, and the order is that of time, whatever that of the lines is.
func TestJSONL(t *testing.T) {
	got, err := trace.ReadJSONL(strings.NewReader(small), "f.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	want := trace.Trace{
		Name: "nightly", Source: "us", Synthetic: true,
		Jobs: []trace.Job{
			{ID: "z", Duration: time.Millisecond, Podsets: []trace.Podset{{Count: 1}}},
			{
				ID:          "a",
				Tenant:      "research",
				Submit:      90 * time.Second,
				Duration:    time.Hour + 250*time.Millisecond,
				Podsets:     []trace.Podset{{Count: 16, GPUs: 8, CPU: 64000, Memory: 512 << 30}, {Count: 1}},
				MinCount:    12,
				Priority:    -5,
				Preemptible: true,
				Grace:       5 * time.Minute,
				Required:    "block",
				Preferred:   "rack",
				Segment:     trace.Segment{Size: 4, Level: "rack"},
				Estimate:    3 * time.Hour,
				EndState:    trace.Failed,
			},
			{ID: "b", Submit: 90 * time.Second, Duration: 2 * time.Hour, Podsets: []trace.Podset{{Count: 1}}},
		},
		Events: []trace.Event{
			{At: time.Hour, Kind: trace.Drain, Nodes: []string{"n1", "n2"}},
			{At: time.Hour, Kind: trace.Fail, Nodes: []string{"n1"}},
			{At: 5 * time.Hour, Kind: trace.Return, Nodes: []string{"n1"}},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if j := got.Jobs[1]; j.Pods() != 17 || j.GPUs() != 128 || j.GPUHours() < 128 || j.GPUHours() > 128.01 {
		t.Errorf("%d pods, %d GPUs, %f GPU hours", j.Pods(), j.GPUs(), j.GPUHours())
	}
}

// A written trace reads back unchanged, and is the same text the second time.
func TestJSONL_RoundTrip(t *testing.T) {
	first, err := trace.ReadJSONL(strings.NewReader(small), "f.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	philly, err := trace.Open("philly", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []trace.Trace{first, philly} {
		text := written(t, want)
		got, err := trace.ReadJSONL(bytes.NewReader(text), "again.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: not the same trace", want.Name)
		}
		if !bytes.Equal(written(t, got), text) {
			t.Errorf("%s: not the same text", want.Name)
		}
	}
}

// Whatever text is taken is written and read again as it was; all other is bad input.
func FuzzReadJSONL(f *testing.F) {
	f.Add(small)
	f.Add(`{"job": null}`)
	f.Add(`{"job": {"id": "a", "duration": "1s", "pods": [{"count": 1}], "segment": {}}, "event": null}`)
	f.Fuzz(func(t *testing.T, text string) {
		first, err := trace.ReadJSONL(strings.NewReader(text), "f.jsonl")
		if err != nil {
			if !badinput.Is(err) {
				t.Fatal(err)
			}
			return
		}
		second, err := trace.ReadJSONL(bytes.NewReader(written(t, first)), "f.jsonl")
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%v\nfirst  %+v\nsecond %+v", err, first, second)
		}
	})
}

func written(t *testing.T, tr trace.Trace) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := trace.WriteJSONL(&out, tr); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestJSONL_RefusesBadLines(t *testing.T) {
	job := func(fields string) string { return `{"job": {"id": "a", "duration": "1s", ` + fields + `}}` }
	const one = `"pods": [{"count": 1}]`
	for _, tc := range []struct{ text, want string }{
		{job(one + `, "parallelism": 2`), "f.jsonl:1: job a has a parallelism of 2 and no sweep; name its sweep, or leave the parallelism out"},
		{job(one + `, "sweep": "s", "parallelism": -1`), "f.jsonl:1: job a has a parallelism of -1; write 1 or more, or leave it out"},
		{"", `f.jsonl: there is no job and no event; write a line such as {"job": {…}} for each`},
		{"\n[]", "f.jsonl:2: the line cannot be a JSON array; write it as the format says, durations as texts such as \"90s\""},
		{"{}", "f.jsonl:1: the object has 0 of the keys trace, job and event; write one object with one of them a line"},
		{`{"job": {`, "f.jsonl:1: the line is not JSON: unexpected EOF; write one whole object a line"},
		{job(one) + "{}", "f.jsonl:1: there is more on the line than one object; write one object a line"},
		{job(`"gpus": 8, ` + one), `f.jsonl:1: unknown field "gpus"; remove it, or spell it as the format does`},
		{
			job(`"submit": 5, ` + one),
			"f.jsonl:1: job.submit cannot be a JSON number; write it as the format says, durations as texts such as \"90s\"",
		},
		{job(`"submit": "5", ` + one), `f.jsonl:1: "5" is no duration; write one such as 90s or 26h30m`},
		{
			job(`"submit": "-5s", ` + one),
			"f.jsonl:1: submit is -5s; write a duration since the beginning of the trace, of at most 100 years",
		},
		{`{"job": {"duration": "1s"}}`, "f.jsonl:1: the job has no id; give it one of its own"},
		{
			`{"job": {"id": "a"}}`, "f.jsonl:1: the duration of job a is 0s; write one above 0, of at most 100 years",
		},
		{
			job(`"estimate": "-1s", ` + one),
			"f.jsonl:1: the estimate of job a is -1s; write one of at most 100 years, or leave it out",
		},
		{
			job(`"grace": "-1s", ` + one),
			"f.jsonl:1: the grace of job a is -1s; write one of at most 100 years, or leave it out",
		},
		{
			job(`"endState": "running", ` + one),
			`f.jsonl:1: job a ended "running"; write completed, canceled or failed, or leave it out`,
		},
		{job(`"pods": []`), `f.jsonl:1: job a has no pods; write such as "pods": [{"count": 1, "gpus": 8}]`},
		{job(`"pods": [{}]`), "f.jsonl:1: job a has a count of 0 pods; write 1 or more, and at most 1000000 in all"},
		{
			job(`"pods": [{"count": 600000}, {"count": 600000}]`),
			"f.jsonl:1: job a has a count of 600000 pods; write 1 or more, and at most 1000000 in all",
		},
		{
			job(`"pods": [{"count": 1, "gpus": 64}]`),
			"f.jsonl:1: a pod of job a asks for 64 GPUs; write 0 to 32; gpus are those of one pod",
		},
		{
			job(`"pods": [{"count": 1, "cpuMilli": -1}]`),
			"f.jsonl:1: a pod of job a asks for a cpuMilli of -1; write 0 to 100000000 thousandths of a core",
		},
		{
			job(`"pods": [{"count": 1, "memoryBytes": -1}]`),
			"f.jsonl:1: a pod of job a asks for a memoryBytes of -1; write 0 to 1048576000000000 bytes",
		},
		{
			job(`"minCount": 2, ` + one),
			"f.jsonl:1: job a has 1 pods and a minCount of 2; write at most as many as there are pods, or leave it out",
		},
		{
			job(`"pods": [{"count": 2, "min": 3}]`),
			"f.jsonl:1: job a has a count of 2 pods and a min of 3; write at most as many as the count, or leave it out",
		},
		{
			job(`"pods": [{"count": 2, "min": -1}]`),
			"f.jsonl:1: job a has a count of 2 pods and a min of -1; write at most as many as the count, or leave it out",
		},
		{
			job(`"pods": [{"count": 2, "min": 1}, {"count": 1}]`),
			"f.jsonl:1: job a has a min of 1 where it cannot be; write it at the last of the pods, and no minCount",
		},
		{
			job(`"minCount": 1, "pods": [{"count": 2, "min": 1}]`),
			"f.jsonl:1: job a has a min of 1 where it cannot be; write it at the last of the pods, and no minCount",
		},
		{
			job(`"segment": {"size": 1}, ` + one),
			`f.jsonl:1: job a has 1 pods and segments of 1 in ""; write a size of at most as many as there are pods and ` +
				"a level, or leave the segment out",
		},
		{
			job(one) + "\n" + job(one),
			"f.jsonl:2: job a is there already, in line 1; give each job an id of its own",
		},
		{
			job(one) + "\n" + `{"trace": {"name": "late"}}`,
			"f.jsonl:2: the line of the trace is not the first; move it to the top",
		},
		{`{"trace": {}}`, "f.jsonl:1: the trace has no name; give it one, or leave the line out"},
		{`{"event": {"kind": "explode"}}`, `f.jsonl:1: the event's kind is "explode"; write fail, drain or return`},
		{
			`{"event": {"kind": "fail", "nodes": [""]}}`,
			`f.jsonl:1: the event names no node, or one without a name; write such as "nodes": ["node-1"]`,
		},
		{
			`{"event": {"at": "876001h", "kind": "fail", "nodes": ["n"]}}`,
			"f.jsonl:1: at is 876001h0m0s; write a duration since the beginning of the trace, of at most 100 years",
		},
		{
			`{"event": {"kind": "return", "nodes": ["n"]}}`,
			"f.jsonl:1: n returns at 0s and is there already; let it fail or be drained before",
		},
		{
			// The second line happens before the first.
			`{"event": {"at": "2s", "kind": "drain", "nodes": ["n"]}}` + "\n" +
				`{"event": {"at": "1s", "kind": "fail", "nodes": ["n"]}}`,
			"f.jsonl:1: n is gone already at 2s, by the event fail; let it return before",
		},
	} {
		_, err := trace.ReadJSONL(strings.NewReader(tc.text), "f.jsonl")
		if err == nil || err.Error() != tc.want || !badinput.Is(err) {
			t.Errorf("%q:\ngot  %v\nwant %s", tc.text, err, tc.want)
		}
	}
}

func TestOpen_ReadsFiles(t *testing.T) {
	dir := t.TempDir()
	var packed bytes.Buffer
	pack := gzip.NewWriter(&packed)
	if _, err := pack.Write([]byte(small)); err != nil {
		t.Fatal(err)
	}
	if err := pack.Close(); err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const list = "timestamp,duration,num_gpus,cluster\n2017-10-09 07:01:55,66.0,1,vc\n"
	for name, jobs := range map[string]int{
		write("plain.jsonl", []byte(small)):         3,
		write("packed.jsonl.gz", packed.Bytes()):    3,
		"philly:" + write("list.csv", []byte(list)): 1,
		"philly:data/philly/philly.csv.gz":          82247,
		"philly":                                    82247,
	} {
		tr, err := trace.Open(name, 0)
		if err != nil || len(tr.Jobs) != jobs {
			t.Errorf("%s: %d jobs, %v, want %d", name, len(tr.Jobs), err, jobs)
		}
	}
	if tr, err := trace.Open(filepath.Join(dir, "plain.jsonl"), 1); err != nil || len(tr.Jobs) != 3 {
		t.Errorf("our own file with a seed: %v, %v", tr, err)
	}
	for _, tc := range []struct{ name, want string }{
		{"none.jsonl", "none.jsonl: there is no such file; check the path"},
		{"philly:none.csv", "none.csv: there is no such file; check the path"},
		{"philly:", `there is no trace "philly:"; name philly, philly:FILE`},
		{"k8s-tas:", `there is no trace "k8s-tas:"; name philly, philly:FILE`},
		{"philly:" + filepath.Join(dir, "list.csv"), "weeks cannot be drawn of a trace that lasts 0s; use seed 0"},
		{write("broken.jsonl.gz", packed.Bytes()[:packed.Len()/2]), "it cannot be read beyond line"},
	} {
		_, err := trace.Open(tc.name, 1)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !badinput.Is(err) {
			t.Errorf("%s: got %v, want %s", tc.name, err, tc.want)
		}
	}
}

// With twice the load all jobs arrive in half the time, and the jobs are as long as before.
func TestCompress(t *testing.T) {
	before, err := trace.ReadJSONL(strings.NewReader(small), "f.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	text := string(written(t, before))
	after, err := trace.Compress(before, 2)
	if err != nil {
		t.Fatal(err)
	}
	if after.Jobs[1].Submit != 45*time.Second || after.Jobs[1].Duration != before.Jobs[1].Duration ||
		after.Events[2].At != 150*time.Minute {
		t.Errorf("%+v", after)
	}
	if string(written(t, before)) != text {
		t.Error("the trace was changed")
	}
	for _, load := range []float64{0, -1, 1001, 1e-9} {
		if _, err := trace.Compress(before, load); !badinput.Is(err) {
			t.Errorf("load %g: %v", load, err)
		}
	}
}
