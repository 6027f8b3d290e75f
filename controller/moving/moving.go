// Package moving moves the gangs of TrainJobs from one API of PodGroups to the other, when a cluster's administrator
// has chosen the other.
//
// No pod is touched: pods name their group, in either API. So a group is copied, with its status; the copy counts,
// because the scheduler reads only the chosen API, and the original stays until its job is suspended, ends or is
// deleted, because claims that it owns would be deleted with it.
package moving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/manifests/gangapi"
)

// pause is the time between two lists of the groups in the former API.
const pause = 20 * time.Second

// errMayNotList indicates that the controller has no right to list groups of the former API: none of them is its own. A
// right that only a single request lacks, such as one that an admission policy refuses, is an error like any other.
var errMayNotList = errors.New("no right to list the PodGroups of the former API")

// Mover moves the gangs of one cluster. It runs where the controller leads.
type Mover struct {
	// Old and New are clients of the API that gangs are taken from, and of To.
	Old, New kubernetes.Interface
	To       gangapi.API
	// Jobs reads TrainJobs.
	Jobs client.Reader
	// Namespaces are the namespaces of the gangs to move; empty for all.
	Namespaces []string
	Clock      clock.WithTicker
}

// NeedLeaderElection reports that one replica moves.
func (Mover) NeedLeaderElection() bool { return true }

// Start moves until nothing of a TrainJob is left in the former API, or ctx ends. Faults are logged, and tried again.
func (m Mover) Start(ctx context.Context) error {
	log := klog.FromContext(ctx).WithValues("to", m.To.Version())
	ticker := m.Clock.NewTicker(pause)
	defer ticker.Stop()
	for {
		left, err := m.Step(ctx)
		switch {
		case errors.Is(err, errMayNotList) && left == 0:
			log.Info(
				"Gangs of the former API are not looked for: the controller has no right to",
				"reason",
				err.Error(),
			)
			return nil
		case err != nil && ctx.Err() == nil:
			log.Error(err, "Moving gangs failed; trying again")
		case left == 0:
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// Step copies every group that is needed, deletes the others, and returns the number of groups that are left in the
// former API. A group that fails is left, and does not keep the groups behind it from moving; a list that fails counts
// as one group.
func (m Mover) Step(ctx context.Context) (left int, err error) {
	namespaces := m.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var failures []error
	for _, namespace := range namespaces {
		found, err := m.Old.SchedulingV1beta1().PodGroups(namespace).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return 0, nil // the former API is not served
		case apierrors.IsForbidden(err):
			failures = append(failures, fmt.Errorf("%w: %w", errMayNotList, err))
			continue
		case err != nil:
			left++
			failures = append(failures, fmt.Errorf("listing the PodGroups of the former API: %w", err))
			continue
		}
		for i := range found.Items {
			moved, err := m.move(ctx, &found.Items[i])
			if err != nil {
				moved = 1
				failures = append(failures, err)
			}
			left += moved
		}
	}
	return left, errors.Join(failures...)
}

// move deals with one group; it returns 1 if the group is a TrainJob's and stays for now.
func (m Mover) move(ctx context.Context, group *schedulingv1beta1.PodGroup) (left int, err error) {
	owner := ownership.ControllerOf(group, plan.TrainJobKind())
	if owner == nil {
		return 0, nil
	}
	var job trainerv1alpha1.TrainJob
	err = m.Jobs.Get(ctx, types.NamespacedName{Namespace: group.Namespace, Name: owner.Name}, &job)
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("getting TrainJob %s/%s: %w", group.Namespace, owner.Name, err)
	}
	if err != nil || job.UID != owner.UID || !needed(group, &job) {
		return 0, m.remove(ctx, group)
	}
	return 1, m.copy(ctx, group)
}

// needed reports whether pods of a job's group may start, or run.
func needed(group *schedulingv1beta1.PodGroup, job *trainerv1alpha1.TrainJob) bool {
	suspended := job.Spec.Suspend != nil && *job.Spec.Suspend
	return group.DeletionTimestamp.IsZero() && job.DeletionTimestamp.IsZero() && !job.Ended() && !suspended
}

// copy creates a group in the new API, with its conditions. The reconciler may have created it already, without these.
func (m Mover) copy(ctx context.Context, group *schedulingv1beta1.PodGroup) error {
	groups := m.New.SchedulingV1beta1().PodGroups(group.Namespace)
	want := gangapi.Moved(group, m.To)
	have, err := groups.Get(ctx, group.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		have, err = groups.Create(ctx, want, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("moving PodGroup %s/%s: %w", group.Namespace, group.Name, err)
	}
	if len(have.Status.Conditions) > 0 || len(want.Status.Conditions) == 0 {
		return nil
	}
	have.Status.Conditions = want.Status.Conditions
	if _, err := groups.UpdateStatus(ctx, have, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("moving the status of PodGroup %s/%s: %w", group.Namespace, group.Name, err)
	}
	return nil
}

// remove deletes a group that is not needed. Only this removes our finalizer: the scheduler handles the groups of the
// other API.
func (m Mover) remove(ctx context.Context, group *schedulingv1beta1.PodGroup) error {
	groups := m.Old.SchedulingV1beta1().PodGroups(group.Namespace)
	id := func(err error) error {
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // deleted, replaced or changed meanwhile: the next Step handles it
		}
		return fmt.Errorf("removing PodGroup %s/%s: %w", group.Namespace, group.Name, err)
	}
	if slices.Contains(group.Finalizers, gangapi.Finalizer) {
		kept := slices.DeleteFunc(slices.Clone(group.Finalizers), func(f string) bool { return f == gangapi.Finalizer })
		patch, err := finalizersPatch(group, kept)
		if err != nil {
			return err
		}
		if _, err := groups.Patch(ctx, group.Name, types.MergePatchType, patch, metav1.PatchOptions{}); id(err) != nil {
			return id(err)
		}
	}
	if !group.DeletionTimestamp.IsZero() {
		return nil
	}
	return id(
		groups.Delete(ctx, group.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &group.UID}}),
	)
}

// finalizersPatch is a patch that gives this very version of a group finalizers.
func finalizersPatch(group *schedulingv1beta1.PodGroup, finalizers []string) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": group.UID, "resourceVersion": group.ResourceVersion, "finalizers": finalizers,
	}})
	if err != nil {
		return nil, fmt.Errorf("encoding the finalizers of PodGroup %s/%s: %w", group.Namespace, group.Name, err)
	}
	return patch, nil
}
