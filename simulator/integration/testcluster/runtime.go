package testcluster

// TorchRuntime returns a TrainingRuntime, without version and namespace, of two nodes whose fake pods run for a time
// such as "10m".
func TorchRuntime(name, runTime string) map[string]any {
	pod := map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"simulator.lockstep.dev/run-time": runTime}},
		"spec": map[string]any{"containers": []any{
			map[string]any{"name": "node", "image": "example.com/torch:1"},
		}},
	}
	node := map[string]any{
		"name": "node",
		"template": map[string]any{
			"metadata": map[string]any{
				"labels": map[string]any{"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"},
			},
			"spec": map[string]any{"template": pod},
		},
	}
	return map[string]any{
		"kind": "TrainingRuntime", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"mlPolicy": map[string]any{"numNodes": int64(2), "torch": map[string]any{}},
			"template": map[string]any{"spec": map[string]any{"replicatedJobs": []any{node}}},
		},
	}
}
