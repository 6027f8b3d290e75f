package framework

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// TorchTune is fine-tuning by torchtune: PyTorch with exactly "tune run" as the job's command. Recipe and configuration
// follow from the runtime's name, the number of nodes and devices, and the job's arguments.
type TorchTune struct{}

// Name is the framework's name.
func (TorchTune) Name() string { return "torchtune" }

// Selects reports false: a policy alone does not ask for torchtune, see Select.
func (TorchTune) Selects(trainerv1alpha1.MLPolicySource) bool { return false }

// tunes reports whether the job's command asks for torchtune.
func tunes(command []string) bool { return slices.Equal(command, []string{"tune", "run"}) }

// managed are the settings of a recipe that the runtime makes, because they name places in its volumes.
func managed() []string {
	return []string{"output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file"}
}

// The models that torchtune's runtimes fine-tune, as its configurations call them.
const (
	llama1B  = "llama3_2/1B"
	llama3B  = "llama3_2/3B"
	llama70B = "llama3_3/70B"
	qwen     = "qwen2_5/1.5B"
)

// tunedModel reads the model off the runtime's name, torchtune-<family>-<size>; "" if it is not of that form.
func tunedModel(runtime string) string {
	parts := strings.Split(runtime, "-")
	if len(parts) != 3 {
		return ""
	}
	return strings.ReplaceAll(parts[1], ".", "_") + "/" + strings.ToUpper(parts[2])
}

// tuning holds a job's request to torchtune.
type tuning struct {
	input             Input
	model             string
	lora, qlora, dora bool
}

func tuningOf(input Input) tuning {
	t := tuning{input: input, model: tunedModel(input.Runtime)}
	quantized := false
	for _, arg := range input.Args {
		key, value, _ := strings.Cut(arg, "=")
		isTrue := strings.EqualFold(strings.TrimSpace(value), "true")
		t.lora = t.lora || strings.Contains(arg, "model.lora_attn_modules")
		quantized = quantized || strings.Contains(key, "model.quantize_base") && isTrue
		t.dora = t.dora || strings.Contains(key, "model.use_dora") && isTrue
	}
	t.qlora = quantized && !t.dora
	return t
}

// single reports whether one process of one node does all.
func (t tuning) single() bool {
	return t.input.Nodes == 1 && (torchProcessCount(t.input) == "1" || t.input.GPUs == 1)
}

// saidSingle reports whether the job or the runtime sets one process for all. A node without GPUs has one too, but
// validation does not depend on its CPUs: QLoRA needs a GPU.
func (t tuning) saidSingle() bool {
	return t.input.Processes != nil && *t.input.Processes == 1 || t.input.GPUs == 1
}

// recipe is torchtune's recipe and the suffix of its configuration's name.
func (t tuning) recipe() (recipe, suffix string) {
	switch {
	case t.input.Nodes > 1:
		return "full_finetune_distributed", "_full_multinode"
	case t.qlora && t.single():
		return "lora_finetune_single_device", "_qlora_single_device"
	case t.lora && t.single():
		return "lora_finetune_single_device", "_lora_single_device"
	case t.single():
		return "full_finetune_single_device", "_full_single_device"
	case t.qlora:
		return "lora_finetune_distributed", "_qlora"
	case t.lora:
		return "lora_finetune_distributed", "_lora"
	}
	return "full_finetune_distributed", "_full"
}

// Validate refuses trainings for which torchtune has no recipe, and arguments that would undo the runtime's own.
func (TorchTune) Validate(input Input, spec *field.Path) field.ErrorList {
	faults := Torch{}.Validate(input, spec)
	if input.Nodes == 1 { // with more there is one recipe, whatever their devices
		faults = append(faults, input.refuseUncounted(spec)...)
	}
	t := tuningOf(input)
	trainer, runtime := spec.Child("trainer"), spec.Child("runtimeRef", "name")
	invalid := func(at *field.Path, value any, why string) {
		faults = append(faults, field.Invalid(at, value, why))
	}
	if !slices.Contains([]string{llama1B, llama3B, llama70B, qwen}, t.model) {
		invalid(runtime, input.Runtime, "must have a supported pretrained model, invalid model configured: "+t.model)
	}
	if input.Nodes > 1 && t.model != llama70B {
		invalid(trainer.Child("numNodes"), input.Nodes, fmt.Sprintf("must be 1 for %s model", t.model))
	}
	// With more nodes there is no recipe for either kind of LoRA, and the message names that.
	if t.qlora && t.input.Nodes == 1 && t.model == qwen {
		invalid(runtime, input.Runtime, "QLoRA is not supported for "+qwen+" model")
	}
	if t.qlora && t.input.Nodes == 1 && !t.saidSingle() && (t.model == llama1B || t.model == llama3B) {
		invalid(trainer.Child("numProcPerNode"), torchProcessCount(input),
			fmt.Sprintf("must be auto or 1 for %s model when using QLoRA", t.model))
		invalid(trainer.Child("resourcesPerNode"), input.GPUs,
			fmt.Sprintf("must have gpu resource with value 1 for %s model when using QLoRA", t.model))
	}
	if (t.lora || t.qlora) && input.Nodes > 1 {
		invalid(trainer.Child("numNodes"), input.Nodes,
			"LoRA fine-tuning is not supported for multi-node training in TorchTune")
	}
	for i, arg := range input.Args {
		if key, _, _ := strings.Cut(arg, "="); slices.Contains(managed(), key) {
			invalid(trainer.Child("args").Index(i), arg,
				fmt.Sprintf("must not set immutable config %q in trainer args; it is managed by the runtime", key))
		}
	}
	return faults
}

// Contribute returns torchrun's variables except the leader, which torchtune takes from its command.
func (TorchTune) Contribute(input Input) Contribution {
	contribution := Torch{}.Contribute(input)
	contribution.Env = slices.DeleteFunc(slices.Clone(contribution.Env), func(v corev1.EnvVar) bool {
		return v.Name == torchLeader || v.Name == torchLeaderPort
	})
	contribution.Command = tuningOf(input).command()
	return contribution
}

// command returns tune run with the meeting point, recipe and configuration, and the runtime's arguments about its
// volumes.
func (t tuning) command() []string {
	command := []string{"tune", "run"}
	if t.meets() {
		command = append(command,
			"--rdzv_endpoint="+net.JoinHostPort(t.input.Leader(), strconv.Itoa(int(port))))
	}
	recipe, suffix := t.recipe()
	command = append(command, recipe, "--config", t.model+suffix)
	for _, word := range t.input.Command {
		if key, _, _ := strings.Cut(word, "="); slices.Contains(managed(), key) {
			command = append(command, word)
		}
	}
	return command
}

// meets reports whether more than one process has to find the others.
func (t tuning) meets() bool {
	if t.input.Nodes > 1 {
		return true
	}
	if count, err := strconv.Atoi(torchProcessCount(t.input)); err == nil {
		return count > 1
	}
	return t.input.GPUs > 1
}
