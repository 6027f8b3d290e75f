package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	jobruntime "github.com/kubeflow/trainer/v2/pkg/runtime"
	"github.com/kubeflow/trainer/v2/pkg/runtime/core"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

// rounds is the number of times that each case is rendered. Upstream runs its plugins in the order of a Go map, which
// is drawn anew in each process and here in each round; after so many, an order that matters has been seen.
const rounds = 64

// address is that of a pointer; upstream prints one.
var address = regexp.MustCompile(`0x[0-9a-f]+`)

// refusal is upstream's message in the place of a rendering.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// answers returns all renderings of the case by upstream, each once, sorted by its text: one, unless the order of its
// plugins shows.
func (s scene) answers(ctx context.Context) ([]answer, error) {
	cluster := s.cluster()
	var all []answer
	for range rounds {
		one, err := s.answer(ctx, cluster)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b answer) int { return strings.Compare(a.text, b.text) })
	return all, nil
}

// answer is one result of upstream.
type answer struct {
	// refused is set if text is a refusal, a line for each fault, and not objects in YAML.
	refused bool
	text    string
}

func (s scene) answer(ctx context.Context, cluster client.Client) (answer, error) {
	objects, err := s.render(ctx, cluster)
	if refused, ok := errors.AsType[*refusal](err); ok {
		return answer{refused: true, text: refused.text}, nil
	}
	if err != nil {
		return answer{}, err
	}
	printed, err := text(objects)
	return answer{text: printed}, err
}

// cluster returns a client with the objects that upstream reads; it drops applies. While it builds, upstream applies
// only the snapshot of the runtime, which is the runtime's own text.
func (s scene) cluster() client.Client {
	dropped := interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return nil
		},
	}
	builder := fake.NewClientBuilder().WithScheme(s.scheme).WithObjects(s.objects...)
	return builder.WithInterceptorFuncs(dropped).Build()
}

// render validates the TrainJob as upstream's webhook does, and builds the objects that its controller applies.
func (s scene) render(ctx context.Context, cluster client.Client) (objects []runtime.ApplyConfiguration, err error) {
	job := s.job.DeepCopy()
	if err = s.switchGates(); err != nil {
		return nil, err
	}
	runtimes, err := core.New(ctx, cluster, noIndex{}, configuration())
	if err != nil {
		return nil, fmt.Errorf("starting upstream: %w", err)
	}
	handler, ok := runtimes[jobruntime.RuntimeRefToRuntimeRegistryKey(job.Spec.RuntimeRef)]
	if !ok {
		return nil, &refusal{
			text: "unsupported runtime: " + jobruntime.RuntimeRefToRuntimeRegistryKey(job.Spec.RuntimeRef) + "\n",
		}
	}
	defer func() {
		if cause := recover(); cause != nil {
			objects, err = nil, &refusal{text: fmt.Sprintf("panic: %v\n", cause)}
		}
	}()
	_, faults := handler.ValidateObjects(ctx, nil, job)
	if len(faults) > 0 {
		var lines []string
		for _, fault := range faults {
			// The values are long, and they are the job's.
			lines = append(lines, fmt.Sprintf("%s: %s: %s\n", fault.Field, fault.Type, fault.Detail))
		}
		slices.Sort(lines) // the plugins' order is random
		return nil, &refusal{text: strings.Join(lines, "")}
	}
	objects, err = handler.NewObjects(ctx, job)
	if err != nil {
		return nil, &refusal{text: "rendering: " + address.ReplaceAllString(err.Error(), "0x...") + "\n"}
	}
	return objects, nil
}

// noIndex takes upstream's indexes, which only its watches need.
type noIndex struct{}

func (noIndex) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

// text prints objects as they are sent, sorted by kind and name because upstream returns them in the plugins' order.
// Randomly generated values are replaced by "random", and scripts by "script": these are upstream's work, and their
// text is no rule.
func text(objects []runtime.ApplyConfiguration) (string, error) {
	var documents []string
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			return "", fmt.Errorf("printing a %T: %w", object, err)
		}
		var content map[string]any
		if err = json.Unmarshal(text, &content); err != nil {
			return "", fmt.Errorf("parsing a %T: %w", object, err)
		}
		mask(content)
		text, err = yaml.Marshal(content)
		if err != nil {
			return "", fmt.Errorf("printing a %T: %w", object, err)
		}
		documents = append(documents, string(text))
	}
	slices.SortFunc(documents, func(a, b string) int { return strings.Compare(kindFirst(a), kindFirst(b)) })
	return strings.Join(documents, "---\n"), nil
}

// mask replaces the values that are not compared.
func mask(content map[string]any) {
	data, ok := content["data"].(map[string]any)
	if !ok {
		return
	}
	for key := range data {
		switch {
		case content["kind"] == "Secret":
			data[key] = "random"
		case strings.HasSuffix(key, ".sh"):
			data[key] = "script"
		}
	}
}

// kindFirst is a document with its kind in front.
func kindFirst(document string) string {
	_, after, _ := strings.Cut(document, "\nkind: ")
	return after + document
}
