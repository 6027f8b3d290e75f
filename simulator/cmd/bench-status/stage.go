package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/bench/loadtest"
	"github.com/lockstep-project/lockstep/simulator/bench/reportload"
	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

const (
	namespace = corev1.NamespaceDefault
	// clients is the number of clients that make objects side by side.
	clients = 50
	// setupRate is their common limit, in calls per second.
	setupRate = 1000
	// growing bounds the time for adding jobs.
	growing = 30 * time.Minute
)

// stage is an embedded cluster whose pods are created by this command, and never start: kube-controller-manager, the
// schedulers and KWOK are stopped, so that two cores are left for the measured components.
type stage struct {
	*bench

	cluster   *cluster.Cluster
	clients   kubernetes.Interface
	dynamic   dynamic.Interface
	roots     *x509.CertPool
	usage     func(context.Context) (loadtest.Usage, error)
	reporters []reportload.Reporter
	stopped   []int
}

func (b *bench) open(ctx context.Context) (*stage, error) {
	machines, err := fleet.Open(fleet.Default)
	if err != nil {
		return nil, err
	}
	c, err := cluster.Start(ctx, cluster.Options{
		Dir: filepath.Join(b.dir, "bench-status-cluster"), Mode: probe.Full, Nodes: machines.Nodes[:1],
		Report: func(line string) { b.say("%s", line) },
	})
	if err != nil {
		return nil, err
	}
	s := &stage{bench: b, cluster: c, roots: x509.NewCertPool()}
	if err := s.prepare(ctx); err != nil {
		s.close(ctx)
		return nil, err
	}
	return s, nil
}

func (s *stage) prepare(ctx context.Context) error {
	hurried := rest.CopyConfig(s.cluster.Admin)
	hurried.QPS, hurried.Burst = setupRate, setupRate
	var err error
	if s.clients, err = kubernetes.NewForConfig(hurried); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if s.dynamic, err = dynamic.NewForConfig(hurried); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	scraping, err := rest.HTTPClientFor(s.cluster.Admin)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	s.usage = loadtest.Scrape(scraping, s.cluster.ControllerMetrics())
	if !s.roots.AppendCertsFromPEM(s.cluster.Admin.CAData) {
		return errors.New("the cluster has no authority")
	}
	if _, err := s.cluster.Create(ctx, loadtest.Runtime()); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(
		ctx,
		100*time.Millisecond,
		time.Minute,
		true,
		func(ctx context.Context) (bool, error) {
			_, err := s.clients.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
			return err == nil, nil
		},
	)
	if err != nil {
		return fmt.Errorf("waiting for the default account: %w", err)
	}
	return s.halt("kube-controller-manager", "kube-scheduler", "lockstep-scheduler", "kwok")
}

// halt lets components stand still.
func (s *stage) halt(names ...string) error {
	for _, component := range s.cluster.Components() {
		if !slices.Contains(names, component.Name) {
			continue
		}
		if err := syscall.Kill(component.PID, syscall.SIGSTOP); err != nil {
			return fmt.Errorf("halting %s: %w", component.Name, err)
		}
		s.stopped = append(s.stopped, component.PID)
	}
	return nil
}

// close ends the cluster. Stopped processes could not end.
func (s *stage) close(ctx context.Context) {
	for _, pid := range s.stopped {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
		}
	}
	s.cluster.Stop(context.WithoutCancel(ctx))
}

// grow adds jobs until there are so many, each with its pod and a token.
func (s *stage) grow(parent context.Context, count int) error {
	limited, cancel := context.WithTimeout(parent, growing)
	defer cancel()
	began := s.clock.Now()
	reporters := make([]reportload.Reporter, count)
	first := copy(reporters, s.reporters)
	group, ctx := errgroup.WithContext(limited)
	group.SetLimit(clients)
	for i := first; i < count && ctx.Err() == nil; i++ {
		group.Go(func() error {
			var err error
			reporters[i], err = s.join(ctx, i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("adding jobs: %w", err)
	}
	s.reporters = reporters
	s.say("%d jobs with their pods and tokens after %.0f s", count, s.clock.Since(began).Seconds())
	return nil
}

// join makes one job, waits until the controller and JobSet have made its Job, and gives that a pod and the pod a
// token, as kube-controller-manager and a kubelet would.
func (s *stage) join(ctx context.Context, i int) (reportload.Reporter, error) {
	if _, err := s.cluster.Create(ctx, reportload.TrainJob(namespace, i)); err != nil {
		return reportload.Reporter{}, err
	}
	var job *batchv1.Job
	err := wait.PollUntilContextCancel(ctx, time.Second, false, func(ctx context.Context) (bool, error) {
		var err error
		job, err = s.clients.BatchV1().Jobs(namespace).Get(ctx, reportload.Name(i)+"-node-0", metav1.GetOptions{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return reportload.Reporter{}, fmt.Errorf("waiting for the Job of %s: %w", reportload.Name(i), err)
	}
	pod, err := s.clients.CoreV1().Pods(namespace).Create(ctx, reportload.Pod(job), metav1.CreateOptions{})
	if err != nil {
		return reportload.Reporter{}, fmt.Errorf("creating a pod: %w", err)
	}
	token, err := s.clients.CoreV1().
		ServiceAccounts(namespace).
		CreateToken(ctx, "default", &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{
				Audiences: []string{
					plan.StatusAudience(types.NamespacedName{Namespace: namespace, Name: reportload.Name(i)}),
				},
				BoundObjectRef: &authenticationv1.BoundObjectReference{
					APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
				},
			},
		}, metav1.CreateOptions{})
	if err != nil {
		return reportload.Reporter{}, fmt.Errorf("asking for a token: %w", err)
	}
	reporter := reportload.Reporter{Number: i, Token: token.Status.Token}
	for _, variable := range job.Spec.Template.Spec.Containers[0].Env {
		if variable.Name == plan.EnvStatusURL {
			reporter.URL = variable.Value
		}
	}
	return reporter, nil
}
