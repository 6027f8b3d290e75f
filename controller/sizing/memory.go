package sizing

import "slices"

// Term is a part of the memory that a device needs.
type Term struct {
	Name  string
	Bytes int64
}

// Estimate is the memory that a device needs when it needs most.
type Estimate struct {
	// Peak names that moment.
	Peak string
	// Terms are the parts that are there by then, in a fixed order and none of 0 bytes. Bytes is their sum.
	Terms []Term
	Bytes int64
}

// On returns the memory that each of so many devices needs. Its peak is either at the loss, with all activations
// allocated, or at the end of the backward pass, with all gradients allocated; in between activations are freed as
// gradients are allocated.
func (t Training) On(devices int64) Estimate {
	held := t.held(devices)
	loss := estimate("at the loss", held, t.atLoss(devices))
	backward := estimate("at the end of the backward pass", held, t.atEnd(devices))
	if backward.Bytes > loss.Bytes {
		return backward
	}
	return loss
}

func estimate(peak string, parts ...[]Term) Estimate {
	out := Estimate{Peak: peak}
	for _, term := range slices.Concat(parts...) {
		if term.Bytes > 0 {
			out.Terms, out.Bytes = append(out.Terms, term), out.Bytes+term.Bytes
		}
	}
	return out
}

// held returns the memory that is taken all the time: 16 bytes for each trained parameter with Adam in mixed precision,
// gradients included (Rajbhandari et al., arXiv 1910.02054, section 3.1), divided among the devices by a stage of ZeRO
// (section 5).
func (t Training) held(devices int64) []Term {
	out := []Term{
		{"weights", t.part(t.weights(), ShardAll, devices)},
		{"optimizer", t.part(t.trained()*t.state(), ShardOptimizer, devices)},
	}
	switch {
	case devices == 1:
	case t.Sharding == ShardAll:
		out = append(out, Term{"gathered weights", t.gathered()})
	case t.Sharding == Unsharded:
		out = append(out, Term{"buckets of DDP", t.gradients()})
	}
	return out
}

// part returns the share of a device of so many bytes, if the training shards them from that stage on.
func (t Training) part(bytes int64, from Sharding, devices int64) int64 {
	if t.Sharding < from {
		return bytes
	}
	return (bytes + devices - 1) / devices
}

// weights is the size of all parameters, in bytes.
func (t Training) weights() int64 {
	frozen := t.Model.Parameters * t.element()
	switch t.Method {
	case QLoRA:
		layers := min(t.Model.Parameters, t.Model.Layers*t.Model.layer())
		return quantized(layers) + (t.Model.Parameters-layers+t.trained())*t.element()
	case LoRA, DoRA:
		return frozen + t.trained()*t.element()
	default:
		return frozen
	}
}

// gradients is the size of the gradients of all trained parameters, in bytes.
func (t Training) gradients() int64 { return t.trained() * t.element() }

// state returns the size of the optimizer states of a trained parameter, in bytes: two numbers for Adam, one for SGD
// with momentum, and in mixed precision the 32-bit parameter.
func (t Training) state() int64 {
	number, copied := t.element(), int64(0)
	if t.Precision == Mixed {
		number, copied = 4, 4
	}
	switch t.Optimizer {
	case AdamW8bit:
		return 2 + copied
	case PagedAdamW8bit:
		return copied
	case SGD:
		return number + copied
	default:
		return 2*number + copied
	}
}

// gathered returns the size of other devices' weights that FSDP gathers: the layer that computes and the next one, or
// the embeddings, which no layer has.
func (t Training) gathered() int64 {
	layers := 2 * t.Model.layer() * t.element()
	if t.Method == QLoRA {
		layers = 2 * quantized(t.Model.layer())
	}
	return max(layers, t.Model.embeddings()*t.element())
}

// atLoss returns the memory added to that while the loss is computed.
func (t Training) atLoss(devices int64) []Term {
	out := []Term{{"activations", t.saved()}, {"loss", t.loss()}}
	if t.Method == Full {
		out = append(out, Term{"gradient of the output matrix", t.Model.Vocabulary * t.Model.Hidden * t.element()})
	}
	if t.Step == Accumulating {
		out = append(out, Term{"gradients", t.part(t.gradients(), ShardGradients, devices)})
	}
	return out
}

// atEnd returns the memory added to that at the end of the backward pass.
func (t Training) atEnd(devices int64) []Term {
	gradients := Term{"gradients", t.part(t.gradients(), ShardGradients, devices)}
	if t.Step == InBackward {
		gradients = Term{"gradients of one layer", t.gradients() / t.Model.Layers}
	}
	out := []Term{gradients, {"activations of one layer", t.kept() * t.tokens()}}
	if t.Method == DoRA { // it computes the norm of each merged matrix
		out = append(out, Term{"merged matrix", t.Model.layer() / 3 * t.element()})
	}
	return out
}

// saved is the size of the activations that wait for the backward pass, in bytes.
func (t Training) saved() int64 {
	switch t.Activations {
	case Checkpointed:
		return t.Model.Layers * t.Model.Hidden * t.element() * t.tokens()
	case Offloaded:
		return 0
	default:
		return t.Model.Layers * t.kept() * t.tokens()
	}
}

// kept returns the size of the activations that autograd saves of one layer for one token, in bytes, with attention
// that never has all its scores at once. It is 34 x Hidden for a network of the original kind in 16 bits (Korthikanti
// et al., arXiv 2205.05198, equation 2 without the term of the scores, which FlashAttention recomputes). For a gated
// one it is counted in the same way: inputs of both norms, of the projections and of the network, queries, keys, values
// and the output of attention, and four tensors of the inner width. PyTorch's norms in 32 bits have 12 x Hidden instead
// of 4, torchtune repeats keys and values for each head, and transposing the output of attention copies it.
// torch.compile fuses the norms and recomputes the activation function, so that neither is saved.
func (t Training) kept() int64 {
	m, size := t.Model, t.element()
	switch {
	case m.Feed == 0:
		return 17 * m.Hidden * size
	case t.Compiled:
		return size * (6*m.Hidden + 2*m.KeyValue + 3*m.Feed)
	default:
		return 12*m.Hidden + size*(7*m.Hidden+4*m.Feed)
	}
}

// loss is the size of logits, their probabilities in 32 bits, and the gradients of both, in bytes. In chunks, only the
// probabilities of all tokens wait for the backward pass, or only the logits where the kernels are compiled.
func (t Training) loss() int64 {
	logits, size := t.tokens()*t.Model.Vocabulary, t.element()
	switch {
	case !t.ChunkedLoss:
		return logits * (2*size + 8)
	case t.Compiled:
		return logits*size + logits*size/lossChunks
	default:
		return logits*4 + logits*(size+8)/lossChunks
	}
}
