package framework

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/controller/sizing"
)

// Measurer is a Framework that can compute the memory of its trainings on a device.
type Measurer interface {
	// Work returns that for a job, and the bounds of its nodes and devices. The reason is not empty where it is not
	// known.
	Work(input Input) (work sizing.Work, reason string)
}

// tunedSequence is the number of tokens of a sequence of a job that sets no tokenizer.max_seq_len: only its data shows
// the longest one. torchtune publishes its figures for this length.
const tunedSequence = 2048

// mostTokens bounds the tokens on a device at a time, so that no product overflows.
const mostTokens = 1_000_000_000

// Work returns the memory of torchtune's recipes with the settings of its configurations (version 0.6), as the job's
// arguments change them.
func (TorchTune) Work(input Input) (work sizing.Work, reason string) {
	t := tuningOf(input)
	model, ok := sizing.Known(t.model)
	if !ok {
		return sizing.Work{}, fmt.Sprintf(
			"runtime %s has no model whose size is known; say it by annotation lockstep.dev/model",
			input.Runtime,
		)
	}
	for _, devices := range []int64{1, 2} {
		if _, reason = t.training(model, devices); reason != "" {
			return sizing.Work{}, reason
		}
	}
	work = sizing.Work{
		About: "torchtune's " + t.model,
		Mend:  "batch_size, tokenizer.max_seq_len and enable_activation_checkpointing=True in the job's args change what it needs",
		On: func(devices int64) sizing.Training {
			training, _ := t.training(model, devices) // neither number has a reason against it
			return training
		},
	}
	switch {
	case t.model != llama70B:
		work.MostNodes, work.Bound = 1, "torchtune, which trains "+t.model+" on one node"
	case t.adapts():
		work.MostNodes, work.LeastDevices, work.Bound = 1, 2, "torchtune, which has LoRA on one node only"
	default:
		work.LeastDevices = 2 // no recipe for a single device
	}
	if t.qlora && t.model != llama70B {
		work.MostDevices, work.Bound = 1, "torchtune, which has QLoRA of "+t.model+" for one device only"
	}
	return work, ""
}

// adapts reports whether adapters are trained.
func (t tuning) adapts() bool { return t.lora || t.qlora || t.dora }

// training returns the training of the recipe for so many devices. The reason is about an argument.
func (t tuning) training(model sizing.Model, devices int64) (training sizing.Training, reason string) {
	training = t.configured(model, devices)
	for _, arg := range t.input.Args {
		if key, value, ok := strings.Cut(arg, "="); ok {
			if reason = override(&training, key, value); reason != "" {
				return training, reason
			}
		}
	}
	if training.Batch > mostTokens/training.Sequence {
		return training, fmt.Sprintf(
			"%d sequences of %d tokens are more than %d tokens on a device",
			training.Batch,
			training.Sequence,
			mostTokens,
		)
	}
	return training, ""
}

// configured returns the settings of the configuration for so many devices.
func (t tuning) configured(model sizing.Model, devices int64) sizing.Training {
	out := sizing.Training{
		Model:       model,
		Method:      t.method(),
		Precision:   sizing.BFloat16,
		Optimizer:   sizing.AdamW,
		Activations: sizing.Checkpointed,
		Step:        sizing.Accumulating,
		Rank:        64,
		Batch:       4,
		Sequence:    tunedSequence,
		ChunkedLoss: true,
	}
	single, full := devices == 1, !t.adapts()
	if !single {
		out.Sharding = sizing.ShardAll
	}
	if t.model == llama1B || !full && (t.model == qwen || t.model == llama3B && !single) {
		out.Activations = sizing.Retained
	}
	switch {
	case t.model == llama70B:
		out.Step, out.Rank, out.Batch = sizing.AfterEach, 16, 2
		if full && t.input.Nodes > 1 {
			out.Batch = 4
		}
	case t.model == qwen && full && !single:
		out.Step, out.Batch = sizing.AfterEach, 2
	case t.model == qwen && !full:
		out.Rank, out.Batch = 32, 2
	}
	if full && single {
		out.Step, out.Optimizer = sizing.InBackward, sizing.PagedAdamW8bit
	}
	return out
}

func (t tuning) method() sizing.Method {
	switch {
	case t.qlora:
		return sizing.QLoRA
	case t.dora:
		return sizing.DoRA
	case t.lora:
		return sizing.LoRA
	default:
		return sizing.Full
	}
}

// override applies an argument of torchtune's to a training. The reason is not empty for a value that the memory model
// does not cover.
func override(training *sizing.Training, key, value string) (reason string) {
	numbers := map[string]*int64{
		"batch_size": &training.Batch, "tokenizer.max_seq_len": &training.Sequence, "model.lora_rank": &training.Rank,
	}
	on := strings.EqualFold(strings.TrimSpace(value), "true")
	switch key {
	case "batch_size", "tokenizer.max_seq_len", "model.lora_rank":
		number, err := strconv.ParseInt(value, 10, 32)
		if err != nil || number < 1 {
			return fmt.Sprintf("argument %s=%s must be a number of at least 1", key, value)
		}
		*numbers[key] = number
	case "enable_activation_checkpointing":
		if training.Activations = sizing.Retained; on {
			training.Activations = sizing.Checkpointed
		}
	case "enable_activation_offloading":
		if on && training.Activations == sizing.Checkpointed {
			training.Activations = sizing.Offloaded
		}
	case "optimizer_in_bwd":
		if training.Step = sizing.Accumulating; on {
			training.Step = sizing.InBackward
		}
	case "compile":
		training.Compiled = on
	case "dtype":
		precision, known := map[string]sizing.Precision{"bf16": sizing.BFloat16, "fp32": sizing.Float32}[value]
		if !known {
			return fmt.Sprintf("the memory of argument %s=%s is not known, only that of bf16 and fp32", key, value)
		}
		training.Precision = precision
	case "optimizer", "optimizer._component_":
		return overrideOptimizer(training, key, value)
	case "loss", "loss._component_":
		training.ChunkedLoss = strings.Contains(value, "Chunked") || strings.Contains(value, "LinearCrossEntropy")
	}
	return ""
}

// overrideOptimizer reads the class of an optimizer.
func overrideOptimizer(training *sizing.Training, key, value string) (reason string) {
	class := value[strings.LastIndex(value, ".")+1:]
	switch {
	case slices.Contains([]string{"PagedAdamW", "PagedAdamW8bit", "PagedAdam", "PagedAdam8bit"}, class):
		training.Optimizer = sizing.PagedAdamW8bit
	case slices.Contains([]string{"AdamW8bit", "Adam8bit"}, class):
		training.Optimizer = sizing.AdamW8bit
	case slices.Contains([]string{"AdamW", "Adam"}, class):
		training.Optimizer = sizing.AdamW
	case class == "SGD":
		training.Optimizer = sizing.SGD
	default:
		return fmt.Sprintf("the memory of argument %s=%s is not known", key, value)
	}
	return ""
}
