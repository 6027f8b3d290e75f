package schedulertest

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/flowcontrol"
)

// LimitedClient returns a client of the cluster whose requests, but for watches, wait for a token each, in the order in
// which they are made: qps tokens a second, and burst at first. A client of an API server has such a limit.
func (c *Cluster) LimitedClient(qps float32, burst int) *fake.Clientset {
	limiter := flowcontrol.NewTokenBucketRateLimiter(qps, burst)
	client := fake.NewClientset()
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		limiter.Accept()
		object, err := c.Invokes(action, nil)
		return true, object, stored(err)
	})
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		events, err := c.InvokesWatch(action)
		return true, events, stored(err)
	})
	return client
}
