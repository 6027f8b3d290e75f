package gangpermit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fwk "k8s.io/kube-scheduler/framework"
)

// binder fails a given number of times.
type binder struct {
	fails, asked int
	err          error
	// last is the time of the last request.
	last time.Time
}

func (*binder) Name() string { return "binder" }

func (b *binder) Bind(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	b.asked, b.last = b.asked+1, time.Now()
	if b.asked <= b.fails {
		return fwk.AsStatus(b.err)
	}
	return nil
}

func (w *fakeCluster) newBinder(context.Context, fwk.Handle) (fwk.BindPlugin, error) {
	return &w.binder, nil
}

// A member whose binding fails retains its node and is bound when that works again, within the grace.
func TestGangPermit_BindRetriesWithinGrace(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		fails int
		err   error
		want  fwk.Code
		// asked is the largest number of requests to the API server; took the longest time that one takes.
		asked int
		took  time.Duration
	}{
		"ten times":           {10, errors.New("etcd: no leader"), fwk.Success, 11, 45 * time.Second},
		"for ever":            {1 << 30, errors.New("etcd: no leader"), fwk.Error, 20, time.Minute},
		"the pod is gone":     {1 << 30, apierrors.NewNotFound(pods, "m0"), fwk.Error, 1, 0},
		"another pod is here": {1 << 30, apierrors.NewConflict(pods, "m0", errors.New("uid")), fwk.Error, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, plugin := newFakeCluster(t, 3)
				w.binder = binder{fails: test.fails, err: test.err}
				began := time.Now()
				status := plugin.Bind(t.Context(), cycle{}, member(0), "node")
				if status.Code() != test.want {
					t.Errorf("it ends with %v", status)
				}
				if took := time.Since(began); took > test.took || w.binder.asked > test.asked {
					t.Errorf("it was asked %d times in %s", w.binder.asked, took)
				}
				if over := began.Add(time.Minute); !w.binder.last.Before(over) {
					t.Errorf("it was asked %v after the others are evicted", w.binder.last.Sub(over))
				}
			})
		})
	}
}

func TestGangPermit_BindSkipsOtherPods(t *testing.T) {
	w, plugin := newFakeCluster(t, 3)
	if status := plugin.Bind(t.Context(), cycle{}, &corev1.Pod{}, "node"); !status.IsSkip() || w.binder.asked > 0 {
		t.Errorf("a pod in no gang: %v, asked %d times", status, w.binder.asked)
	}
}
