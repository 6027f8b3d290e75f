package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	nodestages "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeatstages "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podstages "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

// EndsAfter is the time in milliseconds that the fake kubelet takes to end a pod whose annotations state none.
const EndsAfter = 50

// manyNodes is the fleet size beyond which node leases are renewed so rarely that they cost nothing: at 10 s a node,
// the renewals of a large fleet drown the API server.
const manyNodes = 500

// kwokConfig is KWOK's configuration file: its own stages for nodes and pods, but a pod completes only after the run
// time that its annotation names, and one that is deleted ends as a kubelet would end it. Where nodes are in cliques, a
// pod with claims starts only when they are prepared.
func (p plan) kwokConfig() ([]byte, error) {
	complete, err := completeStage()
	if err != nil {
		return nil, err
	}
	birth, err := p.birthStage()
	if err != nil {
		return nil, err
	}
	ready := []byte(podstages.DefaultPodReady)
	if p.cliques {
		if ready, err = preparedStage(); err != nil {
			return nil, err
		}
	}
	leaseSeconds, parallelism := 40, 4
	if p.nodes > manyNodes {
		leaseSeconds, parallelism = 3600, 16
	}
	options := fmt.Sprintf(`apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  nodeLeaseDurationSeconds: %d
  nodePlayStageParallelism: %d
  podPlayStageParallelism: %d
  nodeLeaseParallelism: %d
`, leaseSeconds, parallelism, 4*parallelism, parallelism)
	return bytes.Join([][]byte{
		[]byte(options),
		birth,
		[]byte(heartbeatstages.DefaultNodeHeartbeatWithLease),
		ready,
		complete,
		[]byte(strings.Replace(terminateStage, "ENDS_AFTER", strconv.Itoa(EndsAfter), 1)),
		[]byte(removeStage),
	}, []byte("\n---\n")), nil
}

// A kubelet ends a pod that is being deleted before it lets go of it, with phase Failed unless its containers ended
// well. Policies for failed pods look at that phase, so KWOK's own stage, which deletes at once, would hide every
// eviction from them. It takes less time than a kubelet does (TestKubelet_TakesLongerThanTheFakeOne): who has to say
// why a pod ends before the Job controller reads its exit code has no more time here than on a real node.
const (
	terminateStage = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-terminate
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: Exists}
    - {key: .status.phase, operator: In, values: [Pending, Running]}
  delay:
    durationMilliseconds: ENDS_AFTER
    durationFrom: {expressionFrom: '.metadata.annotations["` + workload.StopTimeAnnotation + `"]'}
  next:
    statusTemplate: |
      {{ $now := Now }}
      phase: Failed
      containerStatuses:
      {{ range .spec.containers }}
      - image: {{ .image | Quote }}
        name: {{ .name | Quote }}
        ready: false
        restartCount: 0
        started: false
        state:
          terminated:
            exitCode: 143
            finishedAt: {{ $now | Quote }}
            {{ if $.metadata.annotations }}{{ with index $.metadata.annotations "` + workload.LastWordsAnnotation + `" }}
            message: {{ . | Quote }}
            {{ end }}{{ end }}
            reason: Error
            startedAt: {{ $now | Quote }}
      {{ end }}
`
	removeStage = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-remove
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: Exists}
    - {key: .status.phase, operator: In, values: [Succeeded, Failed]}
  next:
    delete: true
`
)

// birthStage returns KWOK's stage that makes a node ready, with the kubelet of this process as that of the node. KWOK's
// own flags for that would be the addresses of the pods, too. Both kinds of address are needed: KWOK removes one that
// is alone when a node is ready again.
func (p plan) birthStage() ([]byte, error) {
	stage := nodestages.DefaultNodeInit
	for from, to := range map[string]string{
		"with NodeIP": `with "127.0.0.1"`, "with NodeName": `with "localhost"`,
		"with NodePort": "with " + strconv.Itoa(p.ports.kubelet),
	} {
		if !strings.Contains(stage, from) {
			return nil, fmt.Errorf(
				"changing KWOK's node-initialize stage: it has no %q: %w",
				from,
				errors.ErrUnsupported,
			)
		}
		stage = strings.ReplaceAll(stage, from, to)
	}
	return []byte(stage), nil
}

// preparedStage is KWOK's stage that starts a pod, for one without claims or with claims that are prepared.
func preparedStage() ([]byte, error) {
	stage, err := withCondition([]byte(podstages.DefaultPodReady), map[string]any{
		"key": fmt.Sprintf("if .spec.resourceClaims then .metadata.annotations[%q] else %q end",
			nvlink.PreparedAnnotation, nvlink.Prepared),
		"operator": "In", "values": []any{nvlink.Prepared},
	})
	if err != nil {
		return nil, err
	}
	return encoded(stage)
}

// completeStage is KWOK's stage that completes a Job's pod, delayed by the pod's run-time annotation. A pod whose
// program is sshd serves the launcher of its MPI job until it is deleted, as on a real node.
func completeStage() ([]byte, error) {
	stage, err := withCondition([]byte(podstages.DefaultPodComplete), map[string]any{
		"key":      `if any(.spec.containers[]; (.command[0]? // "") | test("(^|/)sshd$")) then "serves" else "ends" end`,
		"operator": "In",
		"values":   []any{"ends"},
	})
	if err != nil {
		return nil, err
	}
	spec, ok := stage["spec"].(map[string]any)
	if !ok {
		return nil, errors.New("decoding KWOK's pod-complete stage: it has no spec")
	}
	spec["delay"] = map[string]any{
		"durationMilliseconds": workload.DefaultRunTime.Milliseconds(),
		"durationFrom": map[string]any{
			"expressionFrom": fmt.Sprintf(".metadata.annotations[%q]", workload.RunTimeAnnotation),
		},
	}
	return encoded(stage)
}

// withCondition returns a stage of KWOK's with one condition more.
func withCondition(text []byte, condition map[string]any) (map[string]any, error) {
	var stage map[string]any
	if err := yaml.Unmarshal(text, &stage); err != nil {
		return nil, fmt.Errorf("decoding KWOK's stage: %w", err)
	}
	at := []string{"spec", "selector", "matchExpressions"}
	conditions, _, err := unstructured.NestedSlice(stage, at...)
	if err != nil {
		return nil, fmt.Errorf("decoding KWOK's stage: %w", err)
	}
	if err := unstructured.SetNestedSlice(stage, append(conditions, condition), at...); err != nil {
		return nil, fmt.Errorf("changing KWOK's stage: %w", err)
	}
	return stage, nil
}

func encoded(stage map[string]any) ([]byte, error) {
	text, err := yaml.Marshal(stage)
	if err != nil {
		return nil, fmt.Errorf("encoding KWOK's stage: %w", err)
	}
	return text, nil
}
