package frameworks_test

import (
	"fmt"
	"regexp"
	"testing"
)

func TestJAX_AProcessANode(t *testing.T) {
	complete(
		t,
		"jax",
		"Process 0 of 2",
		"Process 1 of 2",
		"Global device count: 2, local 1",
		"Gathered: [1.0, 2.0]",
		"Sum: 3.0",
	)
}

func TestJAX_SeveralDevicesAProcess(t *testing.T) {
	complete(t, "jax-devices", "Global device count: 4, local 2", "Sum: 6.0")
}

func TestXGBoost_AWorkerANode(t *testing.T) {
	expectModels(t, play(t, "xgboost"), 2)
}

// The SDK's job of two GPUs a node, which sets no number of workers: each GPU has one.
func TestXGBoost_AWorkerAGPU(t *testing.T) {
	expectModels(t, play(t, "xgboost-gpus"), 4)
}

func TestXGBoost_AnImageOfOnesOwn(t *testing.T) {
	expectModels(t, play(t, "xgboost-image"), 4)
}

// expectModels checks that so many workers have trained one model.
func expectModels(t *testing.T, job seen, workers int) {
	t.Helper()
	if job.Status != "Complete" {
		t.Errorf("%s is %s", job.Name, job.Status)
	}
	models, count := map[string]bool{}, 0
	for _, found := range regexp.MustCompile(`worker \d+ of (\d+) has model (\w+)`).FindAllStringSubmatch(job.log(), -1) {
		models[found[2]], count = true, count+1
	}
	if len(models) == 1 && count == workers {
		record(t.Name(), fmt.Sprintf("%d workers, one model", workers), job.Seconds)
	} else {
		t.Errorf("%d workers have models %v, want %d with the same", count, models, workers)
	}
}

func TestTorch_DataParallelByGloo(t *testing.T) {
	job := complete(t, "torch", "rank 0 of 4: sum 10", "rank 3 of 4: sum 10")
	gradients := map[string]bool{}
	for _, found := range regexp.MustCompile(`gradient (\S+)`).FindAllStringSubmatch(job.log(), -1) {
		gradients[found[1]] = true
	}
	if len(gradients) != 1 {
		t.Errorf("the gradients are %v, want one", gradients)
	}
}

func TestMPI_BySSH(t *testing.T) {
	complete(t, "mpi", "rank 0 of 2", "rank 1 of 2", "sum 3, hosts 2")
}

// DeepSpeed by mpirun, on CPUs: all ranks have the same weights.
func TestDeepSpeed_ByMPI(t *testing.T) {
	job := complete(t, "deepspeed", "deepspeed rank 0 of 2", "deepspeed rank 1 of 2")
	weights := map[string]bool{}
	for _, found := range regexp.MustCompile(`: weight (\S+)`).FindAllStringSubmatch(job.log(), -1) {
		weights[found[1]] = true
	}
	if len(weights) != 1 {
		t.Errorf("the weights are %v, want the same on all ranks", weights)
	}
}

// A Trainer of transformers reports its progress and its metrics, with no code of ours and none of the user's.
func TestTransformers_ReportsProgress(t *testing.T) {
	job := complete(t, "transformers", "trained 96 steps")
	status := statusOf(t, "transformers", "trainerStatus")
	t.Logf("the TrainJob says %v", status)
	metrics, _ := status["metrics"].([]any)
	if status["progressPercentage"] == int64(100) && len(metrics) > 0 {
		record(t.Name(), fmt.Sprintf("the TrainJob says 100 %%, with %d metrics", len(metrics)), job.Seconds)
	} else {
		t.Errorf("the TrainJob says %v", status)
	}
}
