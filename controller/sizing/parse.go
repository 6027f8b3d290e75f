package sizing

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ErrModel indicates that a description of a training cannot be read; the text names the part.
var ErrModel = errors.New("describing a training")

// The defaults of a description: no sharding, all activations, gradients that add up, and a sequence at a time.
const (
	usualSequence = 4096
	usualRank     = 64
	mostTokens    = 1_000_000_000
	mostModel     = 100_000_000_000_000
)

// Parse reads a description of a training: key=value, separated by commas; only parameters is required (8B, 350M, or a
// whole number). The others are method, precision, optimizer, sharding (none, zero1, zero2, zero3 or fsdp),
// activations, batch, sequence and rank. The error is an ErrModel.
func Parse(text string) (Training, error) {
	out := Training{
		Method:      Full,
		Precision:   Mixed,
		Optimizer:   AdamW,
		Activations: Retained,
		Step:        Accumulating,
		Rank:        usualRank,
		Batch:       1,
		Sequence:    usualSequence,
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || seen[key] {
			return Training{}, fmt.Errorf("%w: %q must be key=value, each key once", ErrModel, part)
		}
		seen[key] = true
		if err := set(&out, key, value); err != nil {
			return Training{}, err
		}
	}
	switch {
	case !seen["parameters"]:
		return Training{}, fmt.Errorf("%w: it has no parameters=NUMBER", ErrModel)
	case out.Batch > mostTokens/out.Sequence:
		return Training{}, fmt.Errorf("%w: batch x sequence are more than %d tokens", ErrModel, mostTokens)
	}
	return out, nil
}

// set reads one value into a training.
func set(t *Training, key, value string) error {
	switch key {
	case "parameters":
		number, err := count(value)
		t.Model = Proportioned(number)
		return err
	case "method":
		return oneOf(&t.Method, key, value, map[string]Method{"full": Full, "lora": LoRA, "qlora": QLoRA, "dora": DoRA})
	case "precision":
		return oneOf(&t.Precision, key, value, map[string]Precision{"mixed": Mixed, "bf16": BFloat16, "fp32": Float32})
	case "optimizer":
		return oneOf(&t.Optimizer, key, value, map[string]Optimizer{
			"adamw": AdamW, "adamw-8bit": AdamW8bit, "paged-adamw-8bit": PagedAdamW8bit, "sgd": SGD,
		})
	case "sharding":
		return oneOf(&t.Sharding, key, value, map[string]Sharding{
			"none": Unsharded, "zero1": ShardOptimizer, "zero2": ShardGradients, "zero3": ShardAll, "fsdp": ShardAll,
		})
	case "activations":
		return oneOf(&t.Activations, key, value, map[string]Activations{
			"retained": Retained, "checkpointed": Checkpointed, "offloaded": Offloaded,
		})
	case "batch", "sequence", "rank":
		number, err := strconv.ParseInt(value, 10, 32)
		if err != nil || number < 1 {
			return fmt.Errorf("%w: %s=%s must be a number of at least 1", ErrModel, key, value)
		}
		*map[string]*int64{"batch": &t.Batch, "sequence": &t.Sequence, "rank": &t.Rank}[key] = number
		return nil
	default:
		return fmt.Errorf(
			"%w: there is no %s; there are parameters, method, precision, optimizer, sharding, activations, batch, sequence, rank",
			ErrModel,
			key,
		)
	}
}

func oneOf[T any](into *T, key, value string, known map[string]T) error {
	found, ok := known[value]
	if !ok {
		return fmt.Errorf(
			"%w: %s=%s must be one of %s",
			ErrModel,
			key,
			value,
			strings.Join(slices.Sorted(maps.Keys(known)), ", "),
		)
	}
	*into = found
	return nil
}

// count reads a number of parameters: a whole number, or one with K, M, B or T for thousands to trillions.
func count(value string) (int64, error) {
	digits, unit := strings.TrimSpace(value), 1.0
	for suffix, size := range map[string]float64{"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12} {
		if cut, ok := strings.CutSuffix(digits, suffix); ok {
			digits, unit = cut, size
			break
		}
	}
	number, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(number*unit >= 1 && number*unit <= mostModel) {
		return 1, fmt.Errorf("%w: parameters=%s must be a number such as 8B or 350M", ErrModel, value)
	}
	return int64(math.Round(number * unit)), nil
}
