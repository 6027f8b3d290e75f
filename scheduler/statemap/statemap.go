// Package statemap stores the state of a scheduler in a ConfigMap, as gzipped JSON, for the next scheduler.
package statemap

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// key is the entry of the ConfigMap.
	key = "state.json.gz"
	// timeout bounds a call.
	timeout = 10 * time.Second
	// mostState bounds the unpacked state, in bytes.
	mostState = 64 << 20
)

// Map is a ConfigMap.
type Map struct {
	Client          kubernetes.Interface
	Namespace, Name string
}

// Read reads the state. It reports whether there is one: a ConfigMap that does not exist, or is as it was installed,
// has none.
func (m Map) Read(ctx context.Context, into any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	object, err := m.Client.CoreV1().ConfigMaps(m.Namespace).Get(ctx, m.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && len(object.BinaryData) == 0:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading ConfigMap %s/%s: %w", m.Namespace, m.Name, err)
	}
	r, err := gzip.NewReader(bytes.NewReader(object.BinaryData[key]))
	if err != nil {
		return false, fmt.Errorf("unpacking ConfigMap %s/%s: %w", m.Namespace, m.Name, err)
	}
	if err := json.NewDecoder(io.LimitReader(r, mostState)).Decode(into); err != nil {
		return false, fmt.Errorf("decoding ConfigMap %s/%s: %w", m.Namespace, m.Name, err)
	}
	return true, nil
}

// Encode returns the state as Write takes it. An object may have a megabyte (Kubernetes, "ConfigMaps").
func Encode(state any) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if err := json.NewEncoder(w).Encode(state); err != nil {
		return nil, fmt.Errorf("encoding a state: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compressing a state: %w", err)
	}
	return out.Bytes(), nil
}

// Write replaces the state by an encoded one. The labels of the ConfigMap stay those of its installation.
func (m Map) Write(ctx context.Context, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	maps := m.Client.CoreV1().ConfigMaps(m.Namespace)
	object, err := maps.Get(ctx, m.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		object = &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name},
			BinaryData: map[string][]byte{key: content},
		}
		_, err = maps.Create(ctx, object, metav1.CreateOptions{})
	case err == nil:
		object.BinaryData = map[string][]byte{key: content}
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("writing ConfigMap %s/%s: %w", m.Namespace, m.Name, err)
	}
	return nil
}
