package integration_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

func pathOf(namespace string) string {
	return "/apis/trainer.kubeflow.org/v1alpha1/namespaces/" + namespace + "/trainjobs/"
}

// table returns the output of kubectl get -o wide for an object, by column.
func table(t *testing.T, path string) map[string]string {
	t.Helper()
	raw, err := shared.Client.SchedulingV1().RESTClient().Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got metav1.Table
	if err = json.Unmarshal(raw, &got); err != nil || len(got.Rows) != 1 {
		t.Fatalf("%s is no table of one row: %v", raw, err)
	}
	out := map[string]string{}
	for i, column := range got.ColumnDefinitions {
		out[strings.ToUpper(column.Name)] = fmt.Sprint(got.Rows[0].Cells[i])
	}
	return out
}

func schedulingOf(t *testing.T, namespace, name string) *trainerv1alpha1.SchedulingStatus {
	t.Helper()
	var raw []byte
	testcluster.Ask(t, func() (err error) {
		raw, err = shared.Client.SchedulingV1().RESTClient().Get().AbsPath(pathOf(namespace) + name).DoRaw(t.Context())
		return err
	})
	var job trainerv1alpha1.TrainJob
	if err := json.Unmarshal(raw, &job); err != nil {
		t.Fatal(err)
	}
	if job.Status.Scheduling == nil {
		return &trainerv1alpha1.SchedulingStatus{}
	}
	return job.Status.Scheduling
}

// toldOf are the reasons of the Events about a TrainJob, as Kubeflow's SDK sees them: it drops those without
// firstTimestamp.
func toldOf(t *testing.T, namespace, name string) []string {
	t.Helper()
	all, err := shared.Client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.kind=TrainJob,involvedObject.name=" + name,
	})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, event := range all.Items {
		if !event.FirstTimestamp.IsZero() {
			out = append(out, event.Reason)
		}
	}
	return out
}

// A job whose data is fetched reports that, and does not wait: its group exists already, and no scheduler can report on
// it.
func TestExplains_AnInitializerThatRuns(t *testing.T) {
	namespace := namespaceOf(t)
	submit(t, strings.ReplaceAll(prepared, "run-time: 12s", "run-time: 10m"))
	var said *trainerv1alpha1.SchedulingStatus
	eventually(t, "the job says that its data is fetched", func() bool {
		said = schedulingOf(t, namespace, "prepared")
		return said.Reason == "not ready yet: dataset-initializer 0 of 1, node 0 of 1"
	})
	if _, err := shared.Client.SchedulingV1beta1().PodGroups(namespace).
		Get(t.Context(), "prepared", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	still := schedulingOf(t, namespace, "prepared")
	for _, s := range []*trainerv1alpha1.SchedulingStatus{said, still} {
		if s.Phase != trainerv1alpha1.PhaseStarting || s.WaitingSince != nil {
			t.Errorf("a job whose data is fetched is %s (%s), and waits since %v", s.Phase, s.Reason, s.WaitingSince)
		}
	}
	fetching := podsOf(t.Context(), t, namespace, "prepared")
	shared.Succeed(t, fetching)
	newRunners(t, namespace, "prepared", 2, fetching)
	eventually(t, "the job runs", func() bool {
		return schedulingOf(t, namespace, "prepared").Phase == trainerv1alpha1.PhaseRunning
	})
	if told := toldOf(t, namespace, "prepared"); slices.Contains(told, "NoPods") || slices.Contains(told, "NotSeen") {
		t.Errorf("its owner is told %v", told)
	}
}

// tellsOfItsPreemption checks the information for the owner of a gang that was just preempted: the TrainJob's columns
// and status, the PodGroup's STATUS, and Events.
func tellsOfItsPreemption(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, "the job says that it was preempted", func() bool {
		said := schedulingOf(t, namespace, name)
		return said.Phase == trainerv1alpha1.PhaseWaiting &&
			slices.ContainsFunc(said.Conditions, func(c metav1.Condition) bool {
				return c.Type == trainerv1alpha1.SchedulingPreempted && c.Status == metav1.ConditionTrue &&
					strings.Contains(c.Message, namespace+"/high")
			})
	})
	job := table(t, pathOf(namespace)+name)
	t.Logf("trainjob: %v", job)
	if job["STATE"] != "Waiting" || job["RANKS"] != "18" || job["WHERE"] != "<nil>" && job["WHERE"] != "" ||
		job["WAIT"] == "" || job["WHY"] == "" {
		t.Errorf("the columns of the job that left are %v", job)
	}
	group := table(t, "/apis/"+offered().API().Version().String()+"/namespaces/"+namespace+"/podgroups/"+name)
	t.Logf("podgroup: %v", group)
	column := "STATUS"
	if offered() == probe.Resources { // a column of a custom resource shows one condition
		column = "DISRUPTION"
	}
	if group[column] != corev1.PodReasonPreemptionByScheduler {
		t.Errorf("%s of its PodGroup is %q", column, group[column])
	}
	high := table(t, pathOf(namespace)+"high")
	t.Logf("trainjob: %v", high)
	if high["STATE"] != "Running" && high["STATE"] != "Starting" || !strings.Contains(high["WHERE"], "/") {
		t.Errorf("the columns of the job that took its place are %v", high)
	}
	eventually(t, "Events of a placement and a preemption", func() bool {
		told := toldOf(t, namespace, name)
		return slices.Contains(told, "Placed") && slices.Contains(told, "Preempted")
	})
}
