package sizing_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/controller/sizing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := sizing.Parse("parameters=8.03B, method=lora, precision=bf16, optimizer=sgd, sharding=zero2, " +
		"activations=offloaded, batch=2, sequence=512, rank=8")
	want := sizing.Training{
		Model:  sizing.Proportioned(8_030_000_000),
		Method: sizing.LoRA, Precision: sizing.BFloat16, Optimizer: sizing.SGD, Sharding: sizing.ShardGradients,
		Activations: sizing.Offloaded, Step: sizing.Accumulating, Batch: 2, Sequence: 512, Rank: 8,
	}
	if err != nil || got != want {
		t.Errorf("it is read as %+v, %v, want %+v", got, err, want)
	}
	usual, err := sizing.Parse("parameters=350M")
	if err != nil || usual.Model.Parameters != 350_000_000 || usual.Method != sizing.Full ||
		usual.Precision != sizing.Mixed ||
		usual.Sharding != sizing.Unsharded ||
		usual.Activations != sizing.Retained ||
		usual.Batch != 1 ||
		usual.Sequence != 4096 {
		t.Errorf("with the size only it is read as %+v, %v", usual, err)
	}
}

func TestParse_BadInput(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                      "must be key=value",
		"8B":                                    `"8B" must be key=value`,
		"method=full":                           "it has no parameters=NUMBER",
		"parameters=many":                       "parameters=many must be a number such as 8B or 350M",
		"parameters=0":                          "must be a number such as 8B",
		"parameters=-1B":                        "must be a number such as 8B",
		"parameters=NaN":                        "must be a number such as 8B",
		"parameters=1e300":                      "must be a number such as 8B",
		"parameters=8B,parameters=9B":           "each key once",
		"parameters=8B,method=half":             "method=half must be one of dora, full, lora, qlora",
		"parameters=8B,sharding=ddp":            "sharding=ddp must be one of fsdp, none, zero1, zero2, zero3",
		"parameters=8B,batch=0":                 "batch=0 must be a number of at least 1",
		"parameters=8B,batch=x":                 "batch=x must be a number of at least 1",
		"parameters=8B,layers=3":                "there is no layers; there are parameters, method",
		"parameters=8B,batch=2000000000":        "more than 1000000000 tokens",
		"parameters=8B,sequence=99999999999999": "sequence=99999999999999 must be a number",
	} {
		if _, err := sizing.Parse(text); !errors.Is(err, sizing.ErrModel) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// No description makes an estimate that is negative or too large for its type.
func FuzzParse(f *testing.F) {
	f.Add("parameters=8B,method=qlora,batch=1000,sequence=100000,rank=2000000000")
	f.Add("parameters=100T,precision=fp32,sharding=fsdp,activations=offloaded,optimizer=adamw-8bit")
	f.Add("parameters=1")
	f.Fuzz(func(t *testing.T, text string) {
		training, err := sizing.Parse(text)
		if err != nil {
			return
		}
		for _, devices := range []int64{1, 8, 100_000} {
			estimate := training.On(devices)
			if estimate.Bytes <= 0 {
				t.Errorf("%q needs %d bytes on each of %d", text, estimate.Bytes, devices)
			}
			for _, term := range estimate.Terms {
				if term.Bytes <= 0 || term.Bytes > estimate.Bytes {
					t.Errorf("%q: %s is %d of %d bytes", text, term.Name, term.Bytes, estimate.Bytes)
				}
			}
		}
	})
}
