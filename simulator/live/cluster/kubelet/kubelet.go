// Package kubelet answers in the place of the kubelets of fake nodes. A fake node runs no program, so the log of each
// of its containers is one line that says so, with the pod's rank and node. kubectl logs and clients that follow a log
// see the end of the pod as they would on a real node.
package kubelet

import (
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// Kubelet serves the part of the kubelet's API that the API server calls for its clients.
type Kubelet struct {
	client kubernetes.Interface
	clock  clock.PassiveClock
	mux    *http.ServeMux
}

// New returns a Kubelet for all pods that a client reads.
func New(client kubernetes.Interface, clk clock.PassiveClock) *Kubelet {
	k := &Kubelet{client: client, clock: clk, mux: http.NewServeMux()}
	k.mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.logs)
	k.mux.HandleFunc("/", absent)
	return k
}

// ServeHTTP answers one request of the API server.
func (k *Kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) { k.mux.ServeHTTP(w, r) }

// absent answers exec, attach and port-forward.
func absent(w http.ResponseWriter, r *http.Request) {
	http.Error(
		w,
		"this node is simulated: no program runs on it, so it serves no "+r.URL.Path,
		http.StatusNotImplemented,
	)
}

// logs answers a request for the log of a container.
func (k *Kubelet) logs(w http.ResponseWriter, r *http.Request) {
	options, err := optionsOf(r.URL.Query())
	if err != nil {
		http.Error(w, "reading the options of a log: "+err.Error(), http.StatusBadRequest)
		return
	}
	pod, err := k.client.CoreV1().Pods(r.PathValue("namespace")).
		Get(r.Context(), r.PathValue("pod"), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case err != nil:
		http.Error(w, "reading the pod: "+err.Error(), http.StatusInternalServerError)
		return
	}
	started, why := start(pod, r.PathValue("container"))
	if options.Previous {
		why = "previous terminated container not found: the containers of fake nodes do not restart"
	}
	if why != "" {
		http.Error(w, why, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	if _, err := w.Write([]byte(k.selected(line(pod, r.PathValue("container")), started, options))); err != nil {
		return // the client has disconnected
	}
	if flusher, can := w.(http.Flusher); can {
		flusher.Flush()
	}
	if options.Follow {
		k.await(r.Context(), pod, r.PathValue("container"))
	}
}

// start returns when a container started, or why it has no log.
func start(pod *corev1.Pod, container string) (started time.Time, why string) {
	where := fmt.Sprintf("container %q in pod %q", container, pod.Name)
	status := statusOf(pod, container)
	switch {
	case status == nil && pod.Status.Phase == corev1.PodPending, status != nil && status.State.Waiting != nil:
		return time.Time{}, where + " is waiting to start"
	case status == nil:
		return time.Time{}, where + " does not exist"
	case status.State.Running != nil:
		return status.State.Running.StartedAt.Time, ""
	case status.State.Terminated != nil:
		return status.State.Terminated.StartedAt.Time, ""
	default:
		return time.Time{}, where + " is waiting to start"
	}
}

func statusOf(pod *corev1.Pod, container string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return &list[i]
			}
		}
	}
	return nil
}
