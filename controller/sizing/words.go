package sizing

import (
	"fmt"
	"strings"
)

// giB prints bytes as GiB with one digit.
func giB(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

// String returns the sum: "weights 3.0 + optimizer 6.0 = 9.0 GiB at the loss".
func (e Estimate) String() string {
	parts := make([]string, len(e.Terms))
	for i, term := range e.Terms {
		parts[i] = fmt.Sprintf("%s %.1f", term.Name, float64(term.Bytes)/(1<<30))
	}
	return strings.Join(parts, " + ") + " = " + giB(e.Bytes) + " " + e.Peak
}

// String describes the method, the model and the settings of a training.
func (t Training) String() string {
	parts := []string{string(t.Precision), string(t.Optimizer)}
	if t.Method != Full {
		parts = append(parts, fmt.Sprintf("rank %d", t.Rank))
	}
	parts = append(
		parts,
		fmt.Sprintf("%d x %d tokens a device", t.Batch, t.Sequence),
		"activations "+string(t.Activations),
	)
	return fmt.Sprintf(
		"%s of %s parameters (%s)",
		methodName(t.Method),
		billions(t.Model.Parameters),
		strings.Join(parts, ", "),
	)
}

func methodName(method Method) string {
	return map[Method]string{Full: "full fine-tuning", LoRA: "LoRA", QLoRA: "QLoRA", DoRA: "DoRA"}[method]
}

// billions prints a number of parameters.
func billions(number int64) string { return fmt.Sprintf("%.2f billion", float64(number)/1e9) }

// sharded describes the sharding over the devices.
func (t Training) sharded(devices int64) string {
	if devices == 1 {
		return ""
	}
	return map[Sharding]string{
		Unsharded: ", all of it on each device", ShardOptimizer: ", optimizer sharded", ShardGradients: ", optimizer and gradients sharded",
		ShardAll: ", sharded over all devices",
	}[t.Sharding]
}

// shape prints nodes x devices.
func (c candidate) shape() string {
	return fmt.Sprintf("%s x %d %s", plural(c.count, "node"), c.per, c.resource)
}

func plural(count int64, noun string) string {
	if count == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", count, noun)
}

// device returns a device's product and memory.
func (c candidate) device() string {
	if c.product == "" {
		return giB(c.memory)
	}
	return c.product + ", " + giB(c.memory)
}

// words is the arithmetic of a candidate that fits.
func (c candidate) words(work Work) string {
	text := fmt.Sprintf("%s (%s): %s", c.shape(), c.device(), c.need(work))
	if c.count > 1 && c.inDomain {
		text += "; they fit into one NVLink domain"
	}
	return text
}

// tooSmall returns the reason why the nearest candidate does not suffice.
func (c candidate) tooSmall(work Work) string {
	text := fmt.Sprintf("nothing fits: even %s (%s) are too few: %s", c.shape(), c.device(), c.need(work))
	if work.Bound != "" && (work.MostNodes > 0 || work.MostDevices > 0) {
		text += "; more is not possible with " + work.Bound
	}
	if work.Mend != "" {
		text += "; " + work.Mend
	}
	return text
}

// need returns the training's need of memory on each device, and a device's usable memory.
func (c candidate) need(work Work) string {
	return fmt.Sprintf(
		"%s, %s%s, needs %s on each device, and %d %% of its memory are %s",
		work.About, c.training, c.training.sharded(c.devices()), c.estimate, 100-headroom, giB(usable(c.memory)),
	)
}
