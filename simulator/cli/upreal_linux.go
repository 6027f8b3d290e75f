package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/manifests/chart"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/relay"
	"github.com/lockstep-project/lockstep/simulator/live/realnode"
)

// Real nodes have a label by which jobs choose them, and a taint against pods for fake nodes, whose images they lack.
const (
	realLabel = "simulator.lockstep.dev/node"
	realValue = "real"
)

// realGPUs is the number of GPUs that a real node reports.
const realGPUs = 8

// supervise runs the programs of a real node and returns its exit code, if this process was started as a node's
// supervisor.
func supervise(ctx context.Context) (code int, is bool) {
	if !realnode.IsNode() {
		return 0, false
	}
	return realnode.Main(ctx, nil, nil), true
}

// runReal runs the command in namespaces of its own. Only the API server's port and the state directory are outside.
func (u up) runReal(ctx context.Context) error {
	var door *net.TCPListener
	if !realnode.Again() {
		var err error
		if door, err = u.prepareReal(ctx); err != nil {
			return err
		}
		defer func() { _ = door.Close() }() // the other process has it, too
	}
	var failed error
	code := realnode.Main(ctx, door, func(ctx context.Context, in realnode.Inside) int {
		failed = u.runInside(ctx, in)
		return exitDone
	})
	if failed == nil && code != exitDone {
		return childError(code)
	}
	return failed
}

// prepareReal does the work that needs the network and the user outside: it looks for the programs of real nodes,
// builds missing ones, and opens the API server's port.
func (u up) prepareReal(ctx context.Context) (*net.TCPListener, error) {
	where := "--nodes " + u.options.nodes
	if os.Geteuid() != 0 {
		return nil, &badinput.Error{
			Where: where,
			What:  "namespaces and mounts need root",
			Mend:  "run it as root, or leave it out",
		}
	}
	programs, userland, err := realPrograms()
	if err != nil {
		return nil, err
	}
	for folder, target := range map[string]string{programs: "nodes", userland: "userland"} {
		if _, err := os.Stat(folder); err != nil {
			return nil, badinput.At(
				relative(folder),
				0,
				"is not there, and real nodes run what is in it",
				"run make "+target,
			)
		}
	}
	if _, _, err := u.workload(); err != nil {
		return nil, err
	}
	if _, err := cluster.Build(ctx, u.say); err != nil {
		return nil, err
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: u.options.port})
	if err != nil {
		return nil, badinput.At(fmt.Sprintf("--port %d", u.options.port), 0, "the port cannot be used: "+err.Error(),
			"choose another port, or leave --port out for a free one")
	}
	return listener, nil
}

// realPrograms are the folders of make nodes and make userland.
func realPrograms() (programs, userland string, err error) {
	root, err := sourcetree.Root()
	if err != nil {
		return "", "", err
	}
	return filepath.Join(root, "bin", "node"), filepath.Join(root, "out", "userland"), nil
}

// runInside brings up the cluster and its real nodes where the network is the project's own.
func (u up) runInside(ctx context.Context, in realnode.Inside) error {
	address := in.Door.Addr().String()
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("reading the API server's address: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("reading the API server's port: %w", err)
	}
	through := relay.Serve(ctx, in.Door, func() string { return address })
	defer through.Close()
	return u.runOn(ctx, func(options cluster.Options) (*cluster.Cluster, error) {
		options.Port, options.Real = port, &cluster.RealNodes{Address: realnode.Address}
		c, err := cluster.Start(ctx, options)
		if err != nil {
			return nil, err
		}
		if err := u.addReal(ctx, c, in.Dir); err != nil {
			c.Stop(context.WithoutCancel(ctx))
			return nil, err
		}
		return c, nil
	})
}

// addReal starts the real nodes. All images that runtimes and jobs name are the userland there.
func (u up) addReal(ctx context.Context, c *cluster.Cluster, dir string) error {
	programs, userland, err := realPrograms()
	if err != nil {
		return err
	}
	objects, err := chart.Runtimes()
	if err != nil {
		return fmt.Errorf("reading the runtimes: %w", err)
	}
	jobs, _, err := u.workload()
	if err != nil {
		return err
	}
	for _, object := range jobs.Objects {
		objects = append(objects, &unstructured.Unstructured{Object: object.Object.Object})
	}
	u.say(fmt.Sprintf("starting %d real nodes", u.options.realNodes))
	nodes, err := realnode.StartAll(ctx, realnode.Cluster{
		Kubeconfig: c.Kubeconfig(), Client: c.Client, Programs: programs, Userland: userland,
		Labels: map[string]string{realLabel: realValue},
		Taint:  corev1.Taint{Key: realLabel, Value: realValue, Effect: corev1.TaintEffectNoSchedule},
	}, u.options.realNodes, dir)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if err := node.TagUserland(ctx, realnode.Images(objects)...); err != nil {
			return err
		}
		if err := node.Offer(ctx, c.Client, "nvidia.com/gpu", realGPUs); err != nil {
			return err
		}
	}
	return nil
}
