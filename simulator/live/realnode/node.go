package realnode

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// How long a node takes until it can run pods: some ten seconds on two cores.
const (
	readyEvery  = 200 * time.Millisecond
	readyWithin = 2 * time.Minute
)

// Cluster describes the cluster that a node joins.
type Cluster struct {
	// Kubeconfig is a file with the permissions of a kubelet.
	Kubeconfig string
	Client     kubernetes.Interface
	// Programs is the folder of make nodes.
	Programs string
	// Userland is the folder of make userland, whose programs are in every container then; empty for images alone.
	Userland string
	// Labels are those that nodes register with, beside their own.
	Labels map[string]string
	// Taint is one that nodes register with, without a key there is none.
	Taint corev1.Taint
}

// Node is a kubelet and its containerd.
type Node struct {
	// Name is that of the Node, Address where it and its kubelet are.
	Name, Address string

	dir        string
	programs   string
	userland   string
	labels     map[string]string
	taint      corev1.Taint
	supervisor *supervisor
}

// Start starts the n-th node, from 1 on, with its files in a folder, and returns when it is ready for pods. It has no
// images but that of the containers that hold pods together.
func Start(ctx context.Context, in Cluster, n int, dir string) (*Node, error) {
	node := &Node{
		Name: nodeName(n), Address: nodeAddress(n),
		programs: in.Programs, userland: in.Userland, labels: in.Labels, taint: in.Taint,
	}
	node.dir = filepath.Join(dir, node.Name)
	if err := addNodeAddress(n); err != nil {
		return nil, err
	}
	group := filepath.Join(os.Getenv(groupVariable), node.Name)
	if err := makeGroups(group); err != nil {
		return nil, err
	}
	if err := node.write(n, in, group); err != nil {
		return nil, err
	}
	if err := node.start(ctx); err != nil {
		return nil, err
	}
	if err := node.loadPause(ctx); err != nil {
		return nil, err
	}
	return node, node.waitUntilReady(ctx, in.Client)
}

// StartAll starts nodes 1 to count one after the other, and the proxy by which pods reach Services, with their files in
// a folder.
func StartAll(ctx context.Context, in Cluster, count int, dir string) ([]*Node, error) {
	var nodes []*Node
	for n := 1; n <= count; n++ {
		node, err := Start(ctx, in, n, dir)
		if err != nil {
			return nil, err
		}
		if nodes = append(nodes, node); n > 1 {
			continue
		}
		if err := startServices(ctx, in, dir); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// nodeName is the name of the n-th node, from 1 on.
func nodeName(n int) string { return fmt.Sprintf("node-%d", n) }

// write writes the configurations of the node's programs.
func (n *Node) write(number int, in Cluster, group string) error {
	for name, content := range map[string]string{
		"containerd.toml":          n.containerd(),
		"kubelet.yaml":             n.kubelet(group),
		"cni/10-lockstep.conflist": pods(number),
	} {
		file := filepath.Join(n.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("making the folder of a node: %w", err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return fmt.Errorf("writing the configuration of a node: %w", err)
		}
	}
	kubeconfig, err := os.ReadFile(in.Kubeconfig)
	if err == nil {
		err = os.WriteFile(filepath.Join(n.dir, "kubeconfig"), kubeconfig, 0o600)
	}
	if err != nil {
		return fmt.Errorf("copying a node's kubeconfig: %w", err)
	}
	return nil
}

// start starts the node's programs.
func (n *Node) start(ctx context.Context) (err error) {
	if err := n.writeBaseSpec(ctx); err != nil {
		return err
	}
	n.supervisor, err = startSupervisor(nodePlan{Dir: n.dir, Fixed: fixed(), Programs: []program{
		{
			"containerd",
			[]string{filepath.Join(n.programs, "containerd"), "--config=" + n.file("containerd.toml")},
			n.socket(),
		},
		{"kubelet", append([]string{filepath.Join(n.programs, "kubelet")}, n.kubeletFlags()...), ""},
	}})
	return err
}

// kubeletFlags are those that no configuration file has.
func (n *Node) kubeletFlags() []string {
	return []string{
		"--config=" + n.file("kubelet.yaml"), "--kubeconfig=" + n.file("kubeconfig"), "--hostname-override=" + n.Name,
		"--node-ip=" + n.Address, "--root-dir=" + n.file("kubelet"), "--cert-dir=" + n.file("pki"), "--v=2",
		"--node-labels=" + labels.Set(n.labels).String(),
	}
}

func (n *Node) file(name string) string { return filepath.Join(n.dir, name) }

// Offer has the node offer so many of an extended resource, as a device plugin would. The kubelet leaves resources that
// it does not know unchanged.
func (n *Node) Offer(
	ctx context.Context,
	client kubernetes.Interface,
	resource corev1.ResourceName,
	count int64,
) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"capacity": map[corev1.ResourceName]string{resource: strconv.FormatInt(count, 10)},
	}})
	if err != nil {
		return fmt.Errorf("encoding what a node offers: %w", err)
	}
	_, err = client.CoreV1().
		Nodes().
		Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("having %s offer %s: %w", n.Name, resource, err)
	}
	err = wait.PollUntilContextTimeout(ctx, readyEvery, readyWithin, true, func(ctx context.Context) (bool, error) {
		found, err := client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("reading %s: %w", n.Name, err)
		}
		offered := found.Status.Allocatable[resource]
		return offered.Value() == count, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s offers %s: %w", n.Name, resource, err)
	}
	return nil
}

// Kill ends the node's kubelet and containerd at once, as a crash of both does. Its containers run on until the test
// binary ends.
func (n *Node) Kill() error {
	if err := n.supervisor.kill(); err != nil {
		return fmt.Errorf("killing %s: %w", n.Name, err)
	}
	return nil
}

// waitUntilReady waits until the node says that it is ready.
func (n *Node) waitUntilReady(ctx context.Context, client kubernetes.Interface) error {
	err := wait.PollUntilContextTimeout(ctx, readyEvery, readyWithin, true, func(ctx context.Context) (bool, error) {
		if err := n.supervisor.check(); err != nil {
			return false, err
		}
		found, err := client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return false, nil //nolint:nilerr // its kubelet has not registered it yet
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s (its logs are in %s): %w", n.Name, n.dir, err)
	}
	return nil
}
