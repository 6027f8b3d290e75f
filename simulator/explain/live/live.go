// Package live asks a running scheduler: its reservations are in its memory, and a snapshot of the cluster does not
// have them.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/lockstep-project/lockstep/scheduler/reservations"
)

const (
	// Namespace is that in which Lockstep is installed by default.
	Namespace = "lockstep-system"
	// lease is that in which the scheduler that acts writes its name.
	lease = "lockstep-scheduler"
	// securePort is that of kube-scheduler.
	securePort = 10259
	// timeout bounds a question.
	timeout = 30 * time.Second
	// mostAnswer bounds an answer, in bytes.
	mostAnswer = 64 << 20
)

// ErrNoScheduler indicates that no scheduler acts in the cluster.
var ErrNoScheduler = errors.New("no scheduler holds the lease " + lease)

// Reservations asks the scheduler that acts in a cluster, through the API server: the caller needs the right to create
// pods/portforward in the namespace of Lockstep and to get the URL /configz.
func Reservations(ctx context.Context, cluster *rest.Config, namespace string) (reservations.List, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return reservations.List{}, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	pod, err := leader(ctx, client, namespace)
	if err != nil {
		return reservations.List{}, err
	}
	port, stop, err := forward(ctx, cluster, client, types.NamespacedName{Namespace: namespace, Name: pod})
	if err != nil {
		return reservations.List{}, err
	}
	defer stop()
	return ReservationsAt(ctx, cluster, "https://"+net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// leader returns the pod of the scheduler that acts.
func leader(ctx context.Context, client kubernetes.Interface, namespace string) (string, error) {
	held, err := client.CoordinationV1().Leases(namespace).Get(ctx, lease, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("finding the scheduler: %w", err)
	}
	if held.Spec.HolderIdentity == nil || *held.Spec.HolderIdentity == "" {
		return "", fmt.Errorf("namespace %s: %w", namespace, ErrNoScheduler)
	}
	pod, _, _ := strings.Cut(*held.Spec.HolderIdentity, "_") // kube-scheduler's identity is <host name>_<UID>
	return pod, nil
}

// forward opens a port on the loopback interface that leads to the secure port of a pod, until stop is called.
func forward(
	ctx context.Context, cluster *rest.Config, client kubernetes.Interface, pod types.NamespacedName,
) (port int, stop func(), err error) {
	to := client.CoreV1().
		RESTClient().
		Post().
		Resource("pods").
		Namespace(pod.Namespace).
		Name(pod.Name).
		SubResource("portforward").
		URL()
	transport, upgrader, err := spdy.RoundTripperFor(cluster)
	if err != nil {
		return 0, nil, fmt.Errorf("reaching pod %s: %w", pod, err)
	}
	stopped, ready, failed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, to)
	tunnel, err := portforward.NewOnAddresses(
		dialer, []string{"127.0.0.1"}, []string{":" + strconv.Itoa(securePort)}, stopped, ready, io.Discard, io.Discard)
	if err != nil {
		return 0, nil, fmt.Errorf("reaching pod %s: %w", pod, err)
	}
	go func() { failed <- tunnel.ForwardPorts() }()
	stop = func() { close(stopped) }
	select {
	case <-ready:
	case err := <-failed:
		return 0, nil, fmt.Errorf("reaching pod %s, which holds the scheduler's lease: %w", pod, err)
	case <-ctx.Done():
		stop()
		return 0, nil, fmt.Errorf("reaching pod %s: %w", pod, ctx.Err())
	}
	ports, err := tunnel.GetPorts()
	if err != nil {
		stop()
		return 0, nil, fmt.Errorf("reaching pod %s: %w", pod, err)
	}
	return int(ports[0].Local), stop, nil
}

// ErrNotLoopback indicates an address beyond this machine. Schedulers sign their certificates themselves, so a token
// sent there could be read by any server that answers.
var ErrNotLoopback = errors.New("it is not an address of this machine")

// ReservationsAt asks the scheduler at a URL of the loopback interface, with the credentials of the cluster.
func ReservationsAt(ctx context.Context, cluster *rest.Config, address string) (reservations.List, error) {
	at, err := url.Parse(address)
	if err != nil {
		return reservations.List{}, fmt.Errorf("reading the scheduler's address: %w", err)
	}
	if ip := net.ParseIP(at.Hostname()); at.Scheme != "https" || ip == nil || !ip.IsLoopback() {
		return reservations.List{}, fmt.Errorf("scheduler at %s: %w", address, ErrNotLoopback)
	}
	own := rest.CopyConfig(cluster)
	own.Host, own.Insecure = address, true
	own.CAFile, own.CAData, own.ServerName = "", nil, ""
	own.Proxy = nil
	client, err := rest.HTTPClientFor(own)
	if err != nil {
		return reservations.List{}, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client.Timeout = timeout
	request, err := http.NewRequestWithContext(
		ctx,
		http.MethodGet,
		at.JoinPath(reservations.Path).String(),
		http.NoBody,
	)
	if err != nil {
		return reservations.List{}, fmt.Errorf("asking the scheduler: %w", err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return reservations.List{}, fmt.Errorf("asking the scheduler: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return reservations.List{}, fmt.Errorf("asking the scheduler: %s: %w", answer.Status, errRights)
	}
	return read(io.LimitReader(answer.Body, mostAnswer))
}

var errRights = errors.New("the kubeconfig's user may not get the URL " + reservations.Path)

func read(content io.Reader) (reservations.List, error) {
	var all map[string]json.RawMessage
	var list reservations.List
	if err := json.NewDecoder(content).Decode(&all); err != nil {
		return list, fmt.Errorf("reading the scheduler's answer: %w", err)
	}
	entry, ok := all[reservations.Entry]
	if !ok {
		return list, fmt.Errorf("reading the scheduler's answer: %w", errOther)
	}
	if err := json.Unmarshal(entry, &list); err != nil {
		return list, fmt.Errorf("reading the scheduler's answer: %w", err)
	}
	return list, nil
}

var errOther = errors.New("it lists no reservations: is it a lockstep-scheduler of this version?")
