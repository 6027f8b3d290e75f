package framework_test

import (
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/controller/framework"
	"github.com/lockstep-project/lockstep/controller/sizing"
)

func tunes(runtime string, args ...string) framework.Input {
	return framework.Input{Job: "train", Runtime: runtime, Nodes: 1, JobCommand: []string{"tune", "run"}, Args: args}
}

// TestTorchTune_Work compares the training derived from a job with torchtune's configurations, for one device and two.
func TestTorchTune_Work(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input    framework.Input
		one, two string
	}{
		"1B full": {
			tunes("torchtune-llama3.2-1b"),
			"full fine-tuning of 1.24 billion parameters (bf16, paged-adamw-8bit, 4 x 2048 tokens a device, activations retained)",
			"full fine-tuning of 1.24 billion parameters (bf16, adamw, 4 x 2048 tokens a device, activations retained)",
		},
		"3B LoRA": {
			tunes("torchtune-llama3.2-3b", "model.lora_attn_modules=[q_proj,v_proj]"),
			"LoRA of 3.21 billion parameters (bf16, adamw, rank 64, 4 x 2048 tokens a device, activations checkpointed)",
			"LoRA of 3.21 billion parameters (bf16, adamw, rank 64, 4 x 2048 tokens a device, activations retained)",
		},
		"1.5B DoRA with a rank": {
			tunes("torchtune-qwen2.5-1.5b", "model.lora_attn_modules=[q_proj]", "model.use_dora=True", "model.quantize_base=True", "model.lora_rank=16"),
			"DoRA of 1.54 billion parameters (bf16, adamw, rank 16, 2 x 2048 tokens a device, activations retained)",
			"DoRA of 1.54 billion parameters (bf16, adamw, rank 16, 2 x 2048 tokens a device, activations retained)",
		},
		"settings of the job's": {
			tunes("torchtune-llama3.2-3b", "dtype=fp32", "batch_size=8", "tokenizer.max_seq_len=4096", "enable_activation_offloading=True",
				"optimizer=bitsandbytes.optim.AdamW8bit", "epochs=3", "dataset.packed=True"),
			"full fine-tuning of 3.21 billion parameters (fp32, adamw-8bit, 8 x 4096 tokens a device, activations offloaded)",
			"full fine-tuning of 3.21 billion parameters (fp32, adamw-8bit, 8 x 4096 tokens a device, activations offloaded)",
		},
		"70B": {
			tunes("torchtune-llama3.3-70b", "enable_activation_checkpointing=False", "optimizer=torch.optim.SGD"),
			"full fine-tuning of 70.55 billion parameters (bf16, sgd, 2 x 2048 tokens a device, activations retained)",
			"full fine-tuning of 70.55 billion parameters (bf16, sgd, 2 x 2048 tokens a device, activations retained)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work, reason := framework.TorchTune{}.Work(c.input)
			if reason != "" {
				t.Fatal(reason)
			}
			one, two := work.On(1), work.On(2)
			if one.String() != c.one || two.String() != c.two {
				t.Errorf("on one device it is\n%s\nwant\n%s\nand on two\n%s\nwant\n%s", one, c.one, two, c.two)
			}
			if one.Sharding != sizing.Unsharded || two.Sharding != sizing.ShardAll {
				t.Errorf("it shards %d on one device, %d on two", one.Sharding, two.Sharding)
			}
		})
	}
}

func TestTorchTune_WorkNotKnown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		input framework.Input
		want  string
	}{
		"another runtime":       {tunes("mine"), "has no model whose size is known"},
		"another model":         {tunes("torchtune-gemma-2b"), "has no model whose size is known"},
		"no number":             {tunes("torchtune-llama3.2-1b", "batch_size=many"), "batch_size=many must be a number"},
		"no tokens":             {tunes("torchtune-llama3.2-1b", "tokenizer.max_seq_len=null"), "must be a number"},
		"another precision":     {tunes("torchtune-llama3.2-1b", "dtype=fp8"), "dtype=fp8 is not known"},
		"another optimizer":     {tunes("torchtune-llama3.2-1b", "optimizer=my.Lion"), "optimizer=my.Lion is not known"},
		"more than can be held": {tunes("torchtune-llama3.2-1b", "batch_size=2000000000"), "more than 1000000000 tokens"},
	} {
		if _, reason := (framework.TorchTune{}).Work(c.input); !strings.Contains(reason, c.want) {
			t.Errorf("%s: the reason is %q, want %q", name, reason, c.want)
		}
	}
}
