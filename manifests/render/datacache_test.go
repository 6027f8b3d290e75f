package render_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// initializer is the account of the cache's initializers in namespace team-a.
const initializer = "system:serviceaccount:team-a:kubeflow-trainer-cache-initializer"

var (
	accounts = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	services = corev1.SchemeGroupVersion.WithResource("services")
	sets     = schema.GroupVersionResource{
		Group:    "leaderworkerset.x-k8s.io",
		Version:  "v1",
		Resource: "leaderworkersets",
	}
)

type fields = map[string]any

// piece is an object of a cache, which belongs to a TrainJob.
func piece(name, job string, spec fields) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: fields{
		"apiVersion": "v1", "kind": "Piece", "spec": spec,
		"metadata": fields{
			"namespace": "team-a", "name": name,
			"ownerReferences": []any{
				fields{
					"apiVersion": "trainer.kubeflow.org/v1alpha1",
					"kind":       "TrainJob",
					"name":       job,
					"uid":        "1",
					"controller": true,
				},
			},
		},
	}}
}

// set is a LeaderWorkerSet as Kubeflow's initializer creates it, of job train, with further fields of the pods of its
// workers and of their container.
func set(pod, container fields) *unstructured.Unstructured {
	worker := fields{"name": "worker", "image": "cache", "env": []any{fields{"name": "TABLE_NAME", "value": "clicks"}}}
	maps.Copy(worker, container)
	workers := fields{"serviceAccountName": "train-cache", "containers": []any{worker}}
	maps.Copy(workers, pod)
	leader := fields{"serviceAccountName": "train-cache", "containers": []any{fields{"name": "head", "image": "cache"}}}
	return piece("train-cache", "train", fields{"leaderWorkerTemplate": fields{
		"size": int64(3), "leaderTemplate": fields{"spec": leader}, "workerTemplate": fields{"spec": workers},
	}})
}

// The initializer of a job creates the cache of that job, and none of another's; and the cache's pods reach no Secret
// and no other account.
func TestPolicies_DataCaches(t *testing.T) {
	plugin := admissionOf(t, "datacaches.lockstep.dev")
	const (
		pod    = "train-dataset-initializer-0-0-x2x4z"
		own    = "the cache of its own TrainJob only"
		under  = "run under ServiceAccount train-cache"
		secret = "no volumes but of type emptyDir, and no variables from Secrets"
		host   = "nothing of their node"
	)
	twoOwners := piece("train-cache", "train", nil)
	twoOwners.SetOwnerReferences(
		append(twoOwners.GetOwnerReferences(), piece("", "other", nil).GetOwnerReferences()...),
	)
	noOwner := piece("train-cache", "train", nil)
	noOwner.SetOwnerReferences(nil)
	of := func(field string) fields {
		return fields{"env": []any{fields{"name": "X", "valueFrom": fields{field: fields{}}}}}
	}
	for name, c := range map[string]struct {
		by, pod  string
		resource schema.GroupVersionResource
		next     *unstructured.Unstructured
		says     string
	}{
		"its account":                      {resource: accounts, next: piece("train-cache", "train", nil)},
		"its Service":                      {resource: services, next: piece("train-cache-service", "train", nil)},
		"its LeaderWorkerSet":              {resource: sets, next: set(nil, nil)},
		"with variables from the pod":      {resource: sets, next: set(nil, of("fieldRef"))},
		"with an empty folder":             {resource: sets, next: set(fields{"volumes": []any{fields{"name": "a", "emptyDir": fields{}}}}, nil)},
		"another job's Service":            {resource: services, next: piece("other-cache-service", "other", nil), says: own},
		"another job's Service as its own": {resource: services, next: piece("other-cache-service", "train", nil), says: own},
		"its Service as another job's":     {resource: services, next: piece("train-cache-service", "other", nil), says: own},
		"another account":                  {resource: accounts, next: piece("builder", "train", nil), says: own},
		"an account like a Service":        {resource: accounts, next: piece("train-cache-service", "train", nil), says: own},
		"an account without an owner":      {resource: accounts, next: noOwner, says: own},
		"an account of two jobs":           {resource: accounts, next: twoOwners, says: own},
		"with a token of no pod":           {pod: "-", resource: accounts, next: piece("train-cache", "train", nil), says: own},
		"by a rank": {
			pod: "train-node-0-0-x2x4z", resource: accounts, next: piece("train-cache", "train", nil), says: own,
		},
		"by the initializer of a job whose name begins alike": {
			pod:      "train-dataset-initializer-0-0-dataset-initializer-0-0-x2x4z",
			resource: accounts, next: piece("train-cache", "train", nil), says: own,
		},
		"workers under another account": {
			resource: sets, next: set(fields{"serviceAccountName": "admin"}, nil), says: under,
		},
		"workers with a Secret as a volume": {
			resource: sets, next: set(fields{"volumes": []any{fields{"name": "a", "secret": fields{}}}}, nil), says: secret,
		},
		"workers with a Secret in a projected volume": {
			resource: sets, next: set(fields{"volumes": []any{fields{"name": "a", "projected": fields{}}}}, nil), says: secret,
		},
		"workers with a folder of the node": {
			resource: sets, next: set(fields{"volumes": []any{fields{"name": "a", "hostPath": fields{}}}}, nil), says: secret,
		},
		"workers with a variable from a Secret":      {resource: sets, next: set(nil, of("secretKeyRef")), says: secret},
		"workers with all variables of a Secret":     {resource: sets, next: set(nil, fields{"envFrom": []any{fields{}}}), says: secret},
		"an init container with all of a Secret":     {resource: sets, next: set(fields{"initContainers": []any{fields{"envFrom": []any{fields{}}}}}, nil), says: secret},
		"workers in the network of the node":         {resource: sets, next: set(fields{"hostNetwork": true}, nil), says: host},
		"workers among the processes of the node":    {resource: sets, next: set(fields{"hostPID": true}, nil), says: host},
		"workers with a port of the node":            {resource: sets, next: set(nil, fields{"ports": []any{fields{"hostPort": int64(80)}}}), says: host},
		"workers as root of the node":                {resource: sets, next: set(nil, fields{"securityContext": fields{"privileged": true}}), says: host},
		"workers with a capability":                  {resource: sets, next: set(nil, fields{"securityContext": fields{"capabilities": fields{"add": []any{"SYS_ADMIN"}}}}), says: host},
		"workers with a port and fewer capabilities": {resource: sets, next: set(nil, fields{"ports": []any{fields{"containerPort": int64(50051)}}, "securityContext": fields{"privileged": false, "capabilities": fields{"drop": []any{"ALL"}}}})},
		"a user who may create accounts":             {by: tenant, pod: "-", resource: accounts, next: piece("builder", "train", nil)},
		"the initializers' account elsewhere":        {by: "system:serviceaccount:team-b:kubeflow-trainer-cache-initializer", resource: accounts, next: noOwner},
		"another account of the same namespace":      {by: "system:serviceaccount:team-a:default", resource: sets, next: set(fields{"serviceAccountName": "admin"}, nil)},
		"a LeaderWorkerSet without leader's pods":    {resource: sets, next: piece("train-cache", "train", fields{"leaderWorkerTemplate": fields{"workerTemplate": fields{"spec": fields{"containers": []any{}}}}}), says: under},
	} {
		c.next.SetAPIVersion(c.resource.GroupVersion().String())
		w := write{by: initializer, pod: pod, resource: c.resource, kind: "Piece", next: c.next}
		if c.by != "" {
			w.by = c.by
		}
		if c.pod != "" {
			w.pod = c.pod
		}
		if w.pod == "-" {
			w.pod = ""
		}
		says(t, name, admit(t, plugin, w), c.says)
	}
}
