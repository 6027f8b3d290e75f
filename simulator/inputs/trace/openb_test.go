package trace_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

const testdata = "testdata/openb/"

func TestReadOpenbPods_Rows(t *testing.T) {
	const text = `name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
shared,6000,12288,1,460,,LS,Running,427061,12902960,427062
picky,11908,47104,2,1000,V100M32|T4|V100M32,BE,Pending,10001278,10001403,
cpu,8000,30517,0,0,,BE,Running,0,0,0
`
	got, err := trace.ReadOpenbPods(strings.NewReader(text), "pods.csv")
	if err != nil {
		t.Fatal(err)
	}
	want := []trace.OpenbPod{
		{
			Name: "shared", CPU: 6000, Memory: 12288, GPUs: 1, Milli: 460,
			Created: 427061, Scheduled: 427062, Deleted: 12902960,
		},
		{
			Name: "picky", CPU: 11908, Memory: 47104, GPUs: 2, Milli: 1000, Models: []string{"T4", "V100M32"},
			Created: 10001278, Scheduled: trace.NoTime, Deleted: 10001403,
		},
		{Name: "cpu", CPU: 8000, Memory: 30517},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestReadOpenbPods_ColumnsByName(t *testing.T) {
	got, err := trace.ReadOpenbPods(
		strings.NewReader("gpu_milli,num_gpu,memory_mib,cpu_milli,name\n500,1,2,3,p\n"),
		"pods.csv",
	)
	if err != nil {
		t.Fatal(err)
	}
	never := trace.NoTime
	want := trace.OpenbPod{
		Name: "p", CPU: 3, Memory: 2, GPUs: 1, Milli: 500, Created: never, Scheduled: never, Deleted: never,
	}
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// The lists in testdata match their publication.
func TestOpenb_AsPublished(t *testing.T) {
	nodes, err := trace.OpenbNodes(testdata + "openb_node_list_gpu_node.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	gpus, models := 0, map[string]int{}
	var cores int64
	for _, n := range nodes {
		gpus += n.GPUs
		models[n.Model] += n.GPUs
		cores += n.CPU
	}
	if len(nodes) != 1213 || gpus != 6212 || cores/1000 != 107018 || models["G2"] != 4392 || models["T4"] != 842 {
		t.Errorf("%d nodes, %d GPUs, %d cores, %v", len(nodes), gpus, cores/1000, models)
	}
	for _, tc := range []struct {
		list                  string
		pods, cpuOnly, picky  int
		gpus, shared, several int64 // thousandths
	}{
		{list: "default", pods: 8152, cpuOnly: 1088, gpus: 6086_800, shared: 1731_800, several: 444_000},
		{list: "gpuspec33", pods: 8152, cpuOnly: 1088, picky: 2388, gpus: 6086_800, shared: 1731_800, several: 444_000},
		{list: "multigpu50", pods: 9061, cpuOnly: 1088, gpus: 11358_800, shared: 1731_800, several: 5716_000},
	} {
		pods, err := trace.OpenbPods(testdata + "openb_pod_list_" + tc.list + ".csv.gz")
		if err != nil {
			t.Fatal(err)
		}
		got := tc
		got.pods, got.cpuOnly, got.picky, got.gpus, got.shared, got.several = len(pods), 0, 0, 0, 0, 0
		for _, p := range pods {
			asked := int64(p.GPUs) * p.Milli
			got.gpus += asked
			switch {
			case p.GPUs == 0:
				got.cpuOnly++
			case p.GPUs > 1:
				got.several += asked
			case p.Milli < trace.GPU:
				got.shared += asked
			}
			if len(p.Models) > 0 {
				got.picky++
			}
		}
		if got != tc {
			t.Errorf("got  %+v\nwant %+v", got, tc)
		}
	}
}

func TestOpenb_RefusesBadRows(t *testing.T) {
	const nodes, pods = "sn,cpu_milli,memory_mib,gpu,model\n", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
	readNodes := func(text string) error {
		_, err := trace.ReadOpenbNodes(strings.NewReader(text), "f.csv")
		return err
	}
	readPods := func(text string) error {
		_, err := trace.ReadOpenbPods(strings.NewReader(text), "f.csv")
		return err
	}
	for _, tc := range []struct {
		read       func(string) error
		text, want string
	}{
		{readNodes, "", "f.csv: it is empty; begin it with a line of column names: sn,cpu_milli,memory_mib,gpu,model"},
		{readNodes, nodes, "f.csv: there is nothing below the column names; add a node"},
		{
			readNodes, "name,cpu_milli,memory_mib,gpu,model\na,1,2,3,T4\n",
			"f.csv:1: there is no column sn; the columns have to be named, and be at least sn,cpu_milli,memory_mib,gpu,model",
		},
		{
			readNodes, nodes + "a,1,2,3,T4\nb,64 cores,2,3,T4\n",
			`f.csv:3: cpu_milli is "64 cores"; write a whole number from 0 to 100000000`,
		},
		{readNodes, nodes + "a,1,2,33,T4\n", `f.csv:2: gpu is "33"; write a whole number from 0 to 32`},
		{readNodes, nodes + "a,1,-2,1,T4\n", `f.csv:2: memory_mib is "-2"; write a whole number from 0 to 1000000000`},
		{readNodes, nodes + "a,1,2,1,\n", "f.csv:2: the node has GPUs of no model; name their model in the column model"},
		{readNodes, nodes + ",1,2,1,T4\n", "f.csv:2: the row has no name; write one in the column sn"},
		{
			readNodes, nodes + "a,1,2,1,T4\n\na,3,4,0,\n",
			"f.csv:4: a is there already, in line 2; give each row a name of its own",
		},
		{
			readNodes, nodes + "a,1,2\n",
			"f.csv:2: wrong number of fields; write as many fields as there are columns, with commas between",
		},
		{readPods, pods, "f.csv: there is nothing below the column names; add a pod"},
		{
			readPods, pods + "p,1,2,2,500\n",
			"f.csv:2: the pod asks for parts of several GPUs; set gpu_milli to 1000, or num_gpu to 1",
		},
		{
			readPods, pods + "p,1,2,0,500\n",
			"f.csv:2: the pod asks for parts of no GPU; set gpu_milli to 0, or num_gpu to 1",
		},
		{
			readPods, pods + "p,1,2,1,0\n",
			"f.csv:2: the pod asks for nothing of its GPUs; set gpu_milli to 1 to 1000, or num_gpu to 0",
		},
		{readPods, pods + "p,1,2,1,1001\n", `f.csv:2: gpu_milli is "1001"; write a whole number from 0 to 1000`},
	} {
		err := tc.read(tc.text)
		if err == nil || err.Error() != tc.want || !badinput.Is(err) {
			t.Errorf("%q:\ngot  %v\nwant %s", tc.text, err, tc.want)
		}
	}
}

func TestOpenb_RefusesBadFiles(t *testing.T) {
	whole, err := os.ReadFile(testdata + "openb_node_list_gpu_node.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, tc := range []struct {
		file, content, want string
	}{
		{"missing.csv", "", "there is no such file; check the path"},
		{"plain.csv.gz", "sn,cpu_milli", "it is not compressed by gzip, as its name says; rename it, or compress it"},
		{"torn.csv.gz", string(whole[:len(whole)/2]), "it cannot be read to its end: unexpected EOF; fetch the file again"},
	} {
		path := filepath.Join(dir, tc.file)
		if tc.content != "" {
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := trace.OpenbNodes(path)
		if want := path + ": " + tc.want; err == nil || err.Error() != want || !badinput.Is(err) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
