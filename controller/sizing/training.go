package sizing

// Method names the part of a model that is trained.
type Method string

// The methods.
const (
	Full  Method = "full"
	LoRA  Method = "lora"
	QLoRA Method = "qlora"
	DoRA  Method = "dora"
)

// Precision is the number format in which a model is trained.
type Precision string

// The precisions. Mixed has a 32-bit copy of the trained parameters beside the 16-bit one with which it computes, and
// 32-bit optimizer states.
const (
	BFloat16 Precision = "bf16"
	Mixed    Precision = "mixed"
	Float32  Precision = "fp32"
)

// Optimizer names the algorithm that updates the parameters.
type Optimizer string

// The optimizers. The states of PagedAdamW8bit move to the host's memory when the device has no room.
const (
	AdamW          Optimizer = "adamw"
	AdamW8bit      Optimizer = "adamw-8bit"
	PagedAdamW8bit Optimizer = "paged-adamw-8bit"
	SGD            Optimizer = "sgd"
)

// Sharding is a stage of ZeRO: it names the state that is divided among the devices. FSDP is ShardAll, DDP is
// Unsharded.
type Sharding int

// The stages.
const (
	Unsharded Sharding = iota
	ShardOptimizer
	ShardGradients
	ShardAll
)

// Activations names those activations of a layer that are saved for the backward pass.
type Activations string

// The choices: all of them, the inputs of layers, or these in the host's memory.
const (
	Retained     Activations = "retained"
	Checkpointed Activations = "checkpointed"
	Offloaded    Activations = "offloaded"
)

// Step names the moment at which parameters are updated.
type Step string

// The choices: gradients add up over several batches, or live from the backward pass to the step after it, or are used
// up within the backward pass.
const (
	Accumulating Step = "accumulating"
	AfterEach    Step = "after each batch"
	InBackward   Step = "in the backward pass"
)

// lossChunks is into how many parts torchtune's losses split a batch.
const lossChunks = 8

// Training holds the properties of a training on which its memory depends.
type Training struct {
	Model       Model
	Method      Method
	Precision   Precision
	Optimizer   Optimizer
	Sharding    Sharding
	Activations Activations
	Step        Step
	// Rank is that of adapters; of no effect for Full.
	Rank int64
	// Batch is the number of sequences that a device has at a time, Sequence the number of tokens of each.
	Batch, Sequence int64
	// ChunkedLoss is set if the loss is computed for an eighth of a batch at a time.
	ChunkedLoss bool
	// Compiled is set if torch.compile makes the kernels.
	Compiled bool
}

// tokens is the number of tokens that a device has at a time.
func (t Training) tokens() int64 { return t.Batch * t.Sequence }

// element is the size of a number with which the model computes, in bytes.
func (t Training) element() int64 {
	if t.Precision == Float32 {
		return 4
	}
	return 2
}

// trained is the number of parameters that are updated.
func (t Training) trained() int64 {
	switch t.Method {
	case LoRA, QLoRA, DoRA:
		return t.Model.adapters(t.Rank)
	default:
		return t.Model.Parameters
	}
}

// quantized returns the size of frozen parameters of layers in bytes: NF4 with quantized constants takes 4.127 bits a
// parameter (Dettmers et al., arXiv 2305.14314, section 3).
func quantized(parameters int64) int64 { return parameters * 4127 / 8000 }
