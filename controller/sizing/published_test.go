package sizing_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/controller/sizing"
)

var rewrite = flag.Bool("rewrite", false, "write the table of the page anew")

// The units in which figures are published.
const (
	gib = 1 << 30
	gb  = 1_000_000_000
)

// The sources of published figures.
const (
	readme = "torchtune README, Memory and training speed"
	flags  = "torchtune README, Optimization flags"
	zero   = "ZeRO (arXiv 1910.02054), figure 1"
	titan  = "torchtitan benchmarks, llama3_h100_202412, table 2"
)

// published is a figure that others have measured or computed, and its training.
type published struct {
	source, what string
	figure, unit float64
	training     sizing.Training
	devices      int64
	// of computes the quantity of the figure; nil for the peak of a device.
	of func(sizing.Estimate) int64
}

func model(t *testing.T, name string) sizing.Model {
	t.Helper()
	found, ok := sizing.Known(name)
	if !ok {
		t.Fatalf("no model %s", name)
	}
	return found
}

// torchtune returns the settings that the README's runs share: 2 sequences, bf16, compiled, losses in chunks.
func torchtune(model sizing.Model, method sizing.Method, sequence int64) sizing.Training {
	return sizing.Training{
		Model:       model,
		Method:      method,
		Precision:   sizing.BFloat16,
		Optimizer:   sizing.AdamW,
		Sharding:    sizing.ShardAll,
		Activations: sizing.Checkpointed,
		Step:        sizing.AfterEach,
		Rank:        8,
		Batch:       2,
		Sequence:    sequence,
		ChunkedLoss: true,
		Compiled:    true,
	}
}

// with changes a training.
func with(training sizing.Training, changes ...func(*sizing.Training)) sizing.Training {
	for _, change := range changes {
		change(&training)
	}
	return training
}

func retained(t *sizing.Training)  { t.Activations = sizing.Retained }
func offloaded(t *sizing.Training) { t.Activations = sizing.Offloaded }
func eager(t *sizing.Training)     { t.Compiled = false }
func whole(t *sizing.Training)     { t.ChunkedLoss = false }
func inside(t *sizing.Training)    { t.Step = sizing.InBackward }
func paged(t *sizing.Training)     { t.Optimizer = sizing.PagedAdamW8bit }
func eight(t *sizing.Training)     { t.Optimizer = sizing.AdamW8bit }
func rank64(t *sizing.Training)    { t.Rank = 64 }
func one(t *sizing.Training)       { t.Batch = 1 }
func rank16(t *sizing.Training)    { t.Rank = 16 }

// states are the bytes of weights, gradients and optimizer, which the ZeRO paper is about.
func states(estimate sizing.Estimate) int64 {
	var sum int64
	for _, term := range estimate.Terms {
		switch term.Name {
		case "weights", "optimizer", "gradients":
			sum += term.Bytes
		}
	}
	return sum
}

// figures returns all figures with settings that the sources state, or that follow, for README's first table, from the
// shipped configuration: README states 2 sequences for all rows, and the configuration of 405B has 1 (with 2 the error
// is 20.3 %). Left out are: full fine-tuning of 70B (its parameters are in the host's memory), and the first row of the
// flags (sequences of any length).
func figures(t *testing.T) []published {
	t.Helper()
	eightB, threeB, seventyB := model(t, "llama3_1/8B"), model(t, "llama3_2/3B"), model(t, "llama3_3/70B")
	full, lora := torchtune(eightB, sizing.Full, 2048), torchtune(eightB, sizing.LoRA, 2048)
	qlora := torchtune(model(t, "llama3_1/405B"), sizing.QLoRA, 2048)
	tuned := torchtune(threeB, sizing.Full, 4096)
	mixed := sizing.Training{
		Model: sizing.Proportioned(
			7_500_000_000,
		),
		Method:      sizing.Full,
		Precision:   sizing.Mixed,
		Optimizer:   sizing.AdamW,
		Activations: sizing.Retained,
		Step:        sizing.Accumulating,
		Batch:       1,
		Sequence:    1,
	}
	stage := func(s sizing.Sharding) func(*sizing.Training) {
		return func(t *sizing.Training) { t.Sharding = s }
	}
	titan8B := with(torchtune(eightB, sizing.Full, 32_768), whole)
	titan8B.Precision, titan8B.Batch = sizing.Mixed, 1
	return []published{
		{readme, "8B full, 1x 4090", 18.9, gib, with(full, paged, inside), 1, nil},
		{readme, "8B full, 1x A6000 (activations retained)", 37.4, gib, with(full, paged, inside, retained), 1, nil},
		{readme, "8B LoRA, 1x 4090", 16.2, gib, lora, 1, nil},
		{readme, "8B LoRA, 1x A6000 (activations retained)", 30.3, gib, with(lora, retained), 1, nil},
		{readme, "8B QLoRA, 1x 4090", 7.4, gib, torchtune(eightB, sizing.QLoRA, 2048), 1, nil},
		{readme, "70B LoRA, 8x A100", 27.6, gib, with(torchtune(seventyB, sizing.LoRA, 2048), rank16), 8, nil},
		{readme, "405B QLoRA, 8x A100 (1 sequence)", 44.8, gb, with(qlora, rank16, one), 8, nil},
		{flags, "3B full, packed", 60.0, gib, with(tuned, retained, whole, eager), 1, nil},
		{flags, "+ compile", 51.0, gib, with(tuned, retained, whole), 1, nil},
		{flags, "+ chunked cross entropy", 42.9, gib, with(tuned, retained), 1, nil},
		{flags, "+ activation checkpointing", 24.9, gib, tuned, 1, nil},
		{flags, "+ optimizer in backward", 23.1, gib, with(tuned, inside), 1, nil},
		{flags, "+ activation offloading", 21.8, gib, with(tuned, inside, offloaded), 1, nil},
		{flags, "+ 8-bit AdamW", 17.6, gib, with(tuned, inside, offloaded, eight), 1, nil},
		{flags, "3B LoRA", 8.5, gib, with(torchtune(threeB, sizing.LoRA, 4096), offloaded, rank64), 1, nil},
		{flags, "3B QLoRA", 4.6, gib, with(torchtune(threeB, sizing.QLoRA, 4096), offloaded, rank64), 1, nil},
		{titan, "8B full, 8 GPUs, 32,768 tokens", 83.9, gib, titan8B, 8, nil},
		{zero, "7.5B, unsharded", 120, gb, mixed, 1, states},
		{zero, "7.5B, stage 1 on 64", 31.4, gb, with(mixed, stage(sizing.ShardOptimizer)), 64, states},
		{zero, "7.5B, stage 2 on 64", 16.6, gb, with(mixed, stage(sizing.ShardGradients)), 64, states},
		{zero, "7.5B, stage 3 on 64", 1.9, gb, with(mixed, stage(sizing.ShardAll)), 64, states},
	}
}

// TestPublishedFigures compares the model with published figures. An error of more than 20 % fails; the errors are in
// docs/auto-resources.md, which this test writes.
func TestPublishedFigures(t *testing.T) {
	var text strings.Builder
	fmt.Fprint(&text, "| source | training | published | computed | error |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range figures(t) {
		estimate := row.training.On(row.devices)
		bytes := estimate.Bytes
		if row.of != nil {
			bytes = row.of(estimate)
		}
		computed := float64(bytes) / row.unit
		off := (computed/row.figure - 1) * 100
		unit := map[float64]string{gib: "GiB", gb: "GB"}[row.unit]
		fmt.Fprintf(
			&text,
			"| %s | %s | %.1f %s | %.1f %s | %+.0f %% |\n",
			row.source,
			row.what,
			row.figure,
			unit,
			computed,
			unit,
			off,
		)
		if math.Abs(off) > 20 {
			t.Errorf(
				"%s, %s: computed %.1f %s, published %.1f: off by %.0f %%: %v",
				row.source,
				row.what,
				computed,
				unit,
				row.figure,
				off,
				estimate.Terms,
			)
		}
	}
	compareBlock(t, "go test ./controller/sizing -run TestPublishedFigures -rewrite: figures", text.String())
}

// page is the page that shows the figures.
const page = "../../docs/auto-resources.md"

// compareBlock compares a block of the page with its expected text, or writes it.
func compareBlock(t *testing.T, command, text string) {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin := "<!-- " + command + " -->\n"
	before, rest, found := strings.Cut(string(content), begin)
	_, after, ended := strings.Cut(rest, "<!-- end -->\n")
	if !found || !ended {
		t.Fatalf("%s has no block %s", page, command)
	}
	want := before + begin + text + "<!-- end -->\n" + after
	switch {
	case want == string(content):
	case !*rewrite:
		t.Errorf("%s is stale; run %s. The block is to be:\n%s", page, command, text)
	default:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
