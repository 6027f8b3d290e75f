package gangapi

import (
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	schedulingclient "k8s.io/client-go/kubernetes/typed/scheduling/v1beta1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Reader returns a PodGroup from a cache; nil if the cache does not have it.
type Reader func(namespace, name string) *schedulingv1beta1.PodGroup

// Clientset is a clientset with the PodGroups of one API; its decoded pods name their group.
type Clientset struct {
	kubernetes.Interface

	core corev1client.CoreV1Interface
	// groups is nil if the native client serves.
	groups *podGroupClient
}

// Client returns a client of a cluster that stores gangs in an API. All requests share the limits of the configuration.
func Client(config *rest.Config, api API) (*Clientset, error) {
	return ClientWith(config, api, Reading{})
}

// ClientWith is Client for pods that are read in a certain way.
func ClientWith(config *rest.Config, api API, reading Reading) (*Clientset, error) {
	limited := rest.CopyConfig(config)
	if limited.RateLimiter == nil && limited.QPS > 0 {
		limited.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(limited.QPS, max(1, limited.Burst))
	}
	client, err := rest.HTTPClientFor(limited)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", config.Host, err)
	}
	native, err := kubernetes.NewForConfigAndClient(limited, client)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", config.Host, err)
	}
	core, err := coreClient(limited, client, reading)
	if err != nil {
		return nil, fmt.Errorf("making a client of pods: %w", err)
	}
	set := &Clientset{Interface: native, core: core}
	if api != Native {
		if set.groups, err = newPodGroupClient(limited, client, native, api); err != nil {
			return nil, fmt.Errorf("making a client of PodGroups: %w", err)
		}
	}
	return set, nil
}

// CoreV1 returns the client of pods.
func (c *Clientset) CoreV1() corev1client.CoreV1Interface { return c.core }

// SchedulingV1beta1 returns the client of PodGroups.
func (c *Clientset) SchedulingV1beta1() schedulingclient.SchedulingV1beta1Interface {
	if c.groups == nil {
		return c.Interface.SchedulingV1beta1()
	}
	return c.groups
}

// ReadFrom gives the client a cache of PodGroups, from which it takes the base of a status patch. Without one each
// patch costs a read. It must be called before the first request.
func (c *Clientset) ReadFrom(cache Reader) {
	if c.groups != nil {
		c.groups.cache = cache
	}
}

func coreClient(config *rest.Config, client *http.Client, reading Reading) (corev1client.CoreV1Interface, error) {
	own := rest.CopyConfig(config)
	version := corev1.SchemeGroupVersion
	own.GroupVersion, own.APIPath = &version, "/api"
	own.NegotiatedSerializer = serializer{
		rest.CodecFactoryForGeneratedClient(clientscheme.Scheme, clientscheme.Codecs).WithoutConversion(), reading,
	}
	if own.UserAgent == "" {
		own.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	requests, err := rest.RESTClientForConfigAndClient(own, client)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller adds the context
	}
	return corev1client.New(requests), nil
}

// groupClient returns a client of an API's groups, with the scheme that it encodes with. They are sent as JSON, the
// only encoding of custom resources.
func groupClient(config *rest.Config, client *http.Client, api API) (*rest.RESTClient, *runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme()(scheme); err != nil {
		return nil, nil, err
	}
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	own := rest.CopyConfig(config)
	version := api.Version()
	own.GroupVersion, own.APIPath = &version, "/apis"
	own.ContentType, own.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	own.NegotiatedSerializer = runtimeserializer.NewCodecFactory(scheme).WithoutConversion()
	if own.UserAgent == "" {
		own.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	requests, err := rest.RESTClientForConfigAndClient(own, client)
	return requests, scheme, err //nolint:wrapcheck // the caller adds the context
}
