package waiting

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/timing"
)

const (
	// storeKey is the entry of the ConfigMap that holds the state, as gzipped JSON: places of thousands of nodes stay far below the
	// megabyte that an object may have.
	storeKey = "state.json.gz"
	// storePause is how often the state is written at most.
	storePause = 10 * time.Second
	// storeAge is how old the written state may be while there are leases: idle is counted in it.
	storeAge = time.Minute
	// storeTimeout bounds a call.
	storeTimeout = 10 * time.Second
)

// Store keeps the state of a queue in a ConfigMap, for the next scheduler.
type Store struct {
	client          kubernetes.Interface
	namespace, name string
	queue           *Queue
	clock           timing.Timing

	mu      sync.Mutex
	loaded  bool
	written int
	at      time.Time
}

// NewStore returns the store of a queue. Nothing is read or written yet.
func NewStore(client kubernetes.Interface, namespace, name string, queue *Queue, t timing.Timing) *Store {
	return &Store{client: client, namespace: namespace, name: name, queue: queue, clock: t}
}

// Load restores the state of the last scheduler, once. A scheduler that stands by must not call it before it schedules: the state would
// be that of another time. A state that cannot be read is logged, and the queue starts without.
func (s *Store) Load(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded {
		return
	}
	s.loaded = true
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	object, err := s.client.CoreV1().ConfigMaps(s.namespace).Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	if err == nil && len(object.BinaryData) == 0 {
		return // it is as it was installed
	}
	var state State
	if err == nil {
		state, err = decode(object.BinaryData[storeKey])
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Reading the leases of the last scheduler; starting without them",
			"configMap", klog.KRef(s.namespace, s.name))
		return
	}
	s.queue.Restore(state)
	klog.FromContext(ctx).Info("Restored leases", "leases", len(state.Machine.Leases))
}

// Run writes the state until the context ends: soon after a lease has changed, and every minute while there is one.
func (s *Store) Run(ctx context.Context) {
	s.clock.AfterFunc(storePause, func() {
		if ctx.Err() != nil {
			return
		}
		s.save(ctx)
		s.Run(ctx)
	})
}

// save writes the state if it is worth it.
func (s *Store) save(ctx context.Context) {
	changes := s.queue.Changes()
	s.mu.Lock()
	due := s.loaded && (changes != s.written || s.queue.Leasing() && s.clock.Clock.Since(s.at) >= storeAge)
	s.mu.Unlock()
	if !due {
		return
	}
	if err := s.write(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Writing the leases", "configMap", klog.KRef(s.namespace, s.name))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written, s.at = changes, s.clock.Clock.Now()
}

func (s *Store) write(ctx context.Context) error {
	content, err := encode(s.queue.State())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := s.put(ctx, content); err != nil {
		return fmt.Errorf("writing ConfigMap %s/%s: %w", s.namespace, s.name, err)
	}
	return nil
}

// put replaces the content of the ConfigMap. Its labels are those of who installed it.
func (s *Store) put(ctx context.Context, content []byte) error {
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	object, err := maps.Get(ctx, s.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		object = &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name},
			BinaryData: map[string][]byte{storeKey: content},
		}
		_, err = maps.Create(ctx, object, metav1.CreateOptions{})
	case err == nil:
		object.BinaryData = map[string][]byte{storeKey: content}
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	}
	return err //nolint:wrapcheck // the caller says of what
}

func encode(state State) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if err := json.NewEncoder(w).Encode(state); err != nil {
		return nil, fmt.Errorf("encoding the leases: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compressing the leases: %w", err)
	}
	return out.Bytes(), nil
}

// mostState bounds what is unpacked.
const mostState = 64 << 20

func decode(content []byte) (State, error) {
	var state State
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return state, fmt.Errorf("unpacking the leases: %w", err)
	}
	if err := json.NewDecoder(io.LimitReader(r, mostState)).Decode(&state); err != nil {
		return state, fmt.Errorf("decoding the leases: %w", err)
	}
	return state, nil
}
