package stepped

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

// Silent is a recorder that drops Events.
type Silent struct{}

// Eventf does nothing.
func (Silent) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

// WithLogger returns the same.
func (s Silent) WithLogger(klog.Logger) events.EventRecorderLogger { return s }
