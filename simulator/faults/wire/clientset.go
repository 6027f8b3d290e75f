package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/simulator/faults/apiserver"
)

var errNotServed = errors.New("the model of the API server does not serve this")

// Clientset returns a client of the process as schedulers have it: client-go's own, with its limits and its patience,
// on a connection that leads to the gate. It cannot watch.
func Clientset(p *Process, server *apiserver.Server, qps float32, burst int) (kubernetes.Interface, error) {
	config := &rest.Config{Host: "http://apiserver", QPS: qps, Burst: burst}
	config.ContentType = runtime.ContentTypeJSON // requests are decoded here, and the server's own encoding is not
	set, err := kubernetes.NewForConfigAndClient(config, &http.Client{Transport: connection{p, server}})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return set, nil
}

// connection serves HTTP in the caller's goroutine.
type connection struct {
	process *Process
	server  *apiserver.Server
}

// kindOf is the kind of a resource that schedulers ask for.
func kindOf(resource string) (string, bool) {
	kind, ok := map[string]string{
		"pods": "Pod", "nodes": "Node", "podgroups": "PodGroup", "configmaps": "ConfigMap", "jobs": "Job",
		"resourceclaims": "ResourceClaim",
	}[resource]
	return kind, ok
}

// target is the object of a request.
type target struct {
	version           schema.GroupVersion
	kind, subresource string
	name              types.NamespacedName
}

// parse reads a path: /api/VERSION or /apis/GROUP/VERSION, then namespaces/NAMESPACE for namespaced resources, then the
// resource.
func parse(path string) (target, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var t target
	fail := fmt.Errorf("%w: %s", errNotServed, path)
	next := func() string {
		if len(parts) == 0 {
			return ""
		}
		part := parts[0]
		parts = parts[1:]
		return part
	}
	if next() == "apis" {
		t.version.Group = next()
	}
	t.version.Version = next()
	resource := next()
	if resource == "namespaces" && len(parts) > 1 {
		t.name.Namespace, resource = next(), next()
	}
	t.name.Name, t.subresource = next(), next()
	var ok bool
	if t.kind, ok = kindOf(resource); !ok {
		return t, fail
	}
	return t, nil
}

// RoundTrip implements http.RoundTripper.
func (c connection) RoundTrip(r *http.Request) (*http.Response, error) {
	t, err := parse(r.URL.Path)
	if err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		body, err = io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil {
			return nil, fmt.Errorf("reading a request: %w", err)
		}
	}
	value, err := c.ask(r, t, body)
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		s := status.Status()
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		return c.respond(r, int(s.Code), &s)
	}
	if err != nil {
		return nil, err
	}
	return c.respond(r, http.StatusOK, value)
}

// ask makes the call of a request.
func (c connection) ask(r *http.Request, t target, body []byte) (any, error) {
	ctx, s := r.Context(), c.server
	asked := Request{Kind: t.kind, Subresource: t.subresource, Name: t.name, Body: string(body)}
	call := func(verb Verb, do func() (any, error)) (any, error) {
		asked.Verb = verb
		return c.process.call(ctx, asked, do)
	}
	switch {
	case r.Method == http.MethodPost && t.subresource == "binding":
		var b corev1.Binding
		if err := json.Unmarshal(body, &b); err != nil {
			return nil, apiserver.BadRequest(err)
		}
		b.Namespace = t.name.Namespace
		return call(Bind, func() (any, error) {
			return &metav1.Status{Status: metav1.StatusSuccess}, s.Bind(&b)
		})
	case r.Method == http.MethodPost, r.Method == http.MethodPut:
		return c.write(r, t, body)
	case r.Method == http.MethodGet && t.name.Name == "":
		return c.list(r, t)
	case r.Method == http.MethodGet:
		return call(Get, func() (any, error) { return s.Get(t.kind, t.name) })
	case r.Method == http.MethodPatch:
		by := types.PatchType(r.Header.Get("Content-Type"))
		return call(Patch, func() (any, error) {
			return s.Patch(t.kind, t.name, by, body, t.subresource)
		})
	case r.Method == http.MethodDelete:
		var o metav1.DeleteOptions
		if len(body) > 0 {
			if err := json.Unmarshal(body, &o); err != nil {
				return nil, apiserver.BadRequest(err)
			}
		}
		return call(Delete, func() (any, error) {
			return &metav1.Status{Status: metav1.StatusSuccess}, s.Delete(t.kind, t.name, o)
		})
	default:
		return nil, fmt.Errorf("%w: %s %s", errNotServed, r.Method, r.URL.Path)
	}
}

func (c connection) write(r *http.Request, t target, body []byte) (any, error) {
	made, err := c.server.Scheme().New(t.version.WithKind(t.kind))
	o, ok := made.(client.Object)
	if err != nil || !ok {
		return nil, fmt.Errorf("%w: %s", errNotServed, t.kind)
	}
	if err := json.Unmarshal(body, o); err != nil {
		return nil, apiserver.BadRequest(err)
	}
	asked := Request{Verb: Update, Kind: t.kind, Subresource: t.subresource, Name: t.name, Body: string(body)}
	if r.Method == http.MethodPut {
		return c.process.call(r.Context(), asked, func() (any, error) { return c.server.Update(o, t.subresource) })
	}
	asked.Verb, asked.Name.Name = Create, o.GetName()
	return c.process.call(r.Context(), asked, func() (any, error) { return c.server.Create(o) })
}

func (c connection) list(r *http.Request, t target) (any, error) {
	by, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, apiserver.BadRequest(err)
	}
	return c.process.call(r.Context(), Request{Verb: List, Kind: t.kind, Name: t.name}, func() (any, error) {
		out, err := c.server.Scheme().New(t.version.WithKind(t.kind + "List"))
		if err != nil {
			return nil, fmt.Errorf("%w: lists of %s: %w", errNotServed, t.kind, err)
		}
		return out, setItems(out, c.server.List(t.kind, t.name.Namespace), func(o client.Object) bool {
			return by.Matches(labelsOf(o))
		})
	})
}

// respond makes a response. A busy server sends the time after which to retry.
func (connection) respond(r *http.Request, code int, value any) (*http.Response, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing a response: %w", err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if code == http.StatusTooManyRequests {
		header.Set("Retry-After", "1")
	}
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

func setItems(into runtime.Object, objects []client.Object, matches func(client.Object) bool) error {
	items := make([]runtime.Object, 0, len(objects))
	for _, o := range objects {
		if matches(o) {
			items = append(items, o.DeepCopyObject())
		}
	}
	if err := meta.SetList(into, items); err != nil {
		return fmt.Errorf("making a list: %w", err)
	}
	return nil
}
