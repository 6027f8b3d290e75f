package nvlink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// errTaken indicates that a node is labeled for another domain than the cache showed.
var errTaken = errors.New("the node is labeled for another ComputeDomain")

// act carries out one action. An action that is already done is no error.
func (d *Driver) act(ctx context.Context, action Action) error {
	switch action.Verb {
	case Hold:
		return d.finalize(ctx, action.Key, Finalizer)
	case LetGo:
		return d.finalize(ctx, action.Key)
	case Make, Remove:
		return d.template(ctx, action)
	case Publish, Withdraw:
		return d.channel(ctx, action)
	case Label:
		return d.label(ctx, action.Key.Name, action.Domain.UID)
	case Unlabel:
		patch := map[string]any{"labels": map[string]any{DomainLabel: nil}}
		return d.patchNode(ctx, action.Key.Name, patch)
	case Prepare:
		return d.prepared(ctx, action.Key)
	case Refuse:
		return d.refuse(ctx, action.Key, action.Reason)
	}
	return nil
}

// finalize gives a domain finalizers in the place of our own.
func (d *Driver) finalize(ctx context.Context, key types.NamespacedName, ours ...string) error {
	domains := d.dynamic.Resource(Resource()).Namespace(key.Namespace)
	domain, err := domains.Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("getting the ComputeDomain: %w", err)
	}
	others := slices.DeleteFunc(domain.GetFinalizers(), func(f string) bool { return f == Finalizer })
	domain.SetFinalizers(append(others, ours...))
	if _, err = domains.Update(ctx, domain, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("setting the ComputeDomain's finalizers: %w", err)
	}
	return nil
}

func (d *Driver) template(ctx context.Context, action Action) error {
	templates := d.client.ResourceV1().ResourceClaimTemplates(action.Key.Namespace)
	if action.Verb == Remove {
		err := templates.Delete(ctx, action.Domain.Template, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting the claim template: %w", err)
		}
		return nil
	}
	wanted, err := Template(action.Domain)
	if err != nil {
		return err
	}
	if _, err = templates.Create(ctx, wanted, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the claim template: %w", err)
	}
	return nil
}

func (d *Driver) channel(ctx context.Context, action Action) error {
	slices := d.client.ResourceV1().ResourceSlices()
	if action.Verb == Withdraw {
		err := slices.Delete(ctx, SliceName(action.Key.Name), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting the slice: %w", err)
		}
		return nil
	}
	node := d.node(action.Key.Name)
	if node == nil {
		return nil
	}
	_, err := slices.Create(ctx, Slice(node), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the slice: %w", err)
	}
	return nil
}

// label makes a node one of a domain's. It reads the node from the API server: a cache may not show the latest write.
func (d *Driver) label(ctx context.Context, name string, uid types.UID) error {
	node, err := d.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("getting the node: %w", err)
	}
	switch node.Labels[DomainLabel] {
	case string(uid):
		return nil
	case "":
	default:
		return fmt.Errorf("%w: %s", errTaken, node.Labels[DomainLabel])
	}
	return d.patchNode(ctx, name, map[string]any{
		"labels": map[string]any{DomainLabel: uid}, "resourceVersion": node.ResourceVersion,
	})
}

func (d *Driver) patchNode(ctx context.Context, name string, metadata map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("printing a patch: %w", err)
	}
	_, err = d.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("labeling the node: %w", err)
	}
	return nil
}

// prepared lets a pod start.
func (d *Driver) prepared(ctx context.Context, pod types.NamespacedName) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, PreparedAnnotation, Prepared)
	_, err := d.client.CoreV1().
		Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotating the pod: %w", err)
	}
	return nil
}

// refuse reports by an Event on the pod why it does not start, once for each reason.
func (d *Driver) refuse(ctx context.Context, key types.NamespacedName, reason string) error {
	if d.told[key] == reason {
		return nil
	}
	pod, err := d.typed.Core().V1().Pods().Lister().Pods(key.Namespace).Get(key.Name)
	if err != nil {
		return fmt.Errorf("finding the pod: %w", err)
	}
	now := metav1.NewTime(d.clock.Now())
	_, err = d.client.CoreV1().Events(key.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: key.Name + ".", Namespace: key.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: key.Namespace, Name: key.Name, UID: pod.UID,
		},
		Type: corev1.EventTypeWarning, Reason: "FailedPrepareDynamicResources", Message: reason,
		Source:         corev1.EventSource{Component: driverName, Host: pod.Spec.NodeName},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("writing an Event: %w", err)
	}
	d.told[key] = reason
	return nil
}
