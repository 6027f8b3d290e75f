package fakeserver

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Informers returns informers whose pods are those of kube-scheduler's: the ones that have not ended. It is for tests
// that do not link kube-scheduler; a test of podgroups checks the selector.
func Informers(client kubernetes.Interface) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.InformerFor(
		&corev1.Pod{},
		func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			return coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, resync, cache.Indexers{},
				func(options *metav1.ListOptions) {
					options.FieldSelector = "status.phase!=Failed,status.phase!=Succeeded"
				})
		},
	)
	return factory
}
