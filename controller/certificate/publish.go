package certificate

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// publish writes the bundle into the webhook configurations where it differs.
func (k *Keeper) publish(ctx context.Context, bundle []byte) error {
	var faults []error
	for _, name := range k.Mutating {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		faults = append(faults, k.patch(ctx, name, configuration, func() bool {
			changed := false
			for i := range configuration.Webhooks {
				changed = k.trust(&configuration.Webhooks[i].ClientConfig, bundle) || changed
			}
			return changed
		}))
	}
	for _, name := range k.Validating {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		faults = append(faults, k.patch(ctx, name, configuration, func() bool {
			changed := false
			for i := range configuration.Webhooks {
				changed = k.trust(&configuration.Webhooks[i].ClientConfig, bundle) || changed
			}
			return changed
		}))
	}
	return errors.Join(faults...)
}

// patch reads a configuration and writes what edit changes of it, unless somebody else has changed it meanwhile.
func (k *Keeper) patch(ctx context.Context, name string, configuration client.Object, edit func() bool) error {
	if err := k.Client.Get(ctx, client.ObjectKey{Name: name}, configuration); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil // it may be installed later
		}
		return fmt.Errorf("reading webhook configuration %s: %w", name, err)
	}
	before, ok := configuration.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("copying webhook configuration %s: its copy is no object", name)
	}
	if !edit() {
		return nil
	}
	patch := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := k.Client.Patch(ctx, configuration, patch, client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("writing the caBundle of webhook configuration %s: %w", name, err)
	}
	klog.FromContext(ctx).Info("Webhook configuration trusts the certificate", "configuration", name)
	return nil
}

// trust sets the bundle of an entry that calls us, and tells whether it had another one. An entry of our configurations
// calls us unless it names somebody else's Service; one with a URL does, as it has to outside of a cluster.
func (k *Keeper) trust(client *admissionregistrationv1.WebhookClientConfig, bundle []byte) bool {
	service := client.Service
	foreign := service != nil && (service.Name != k.Service.Name || service.Namespace != k.Service.Namespace)
	if foreign || bytes.Equal(client.CABundle, bundle) {
		return false
	}
	client.CABundle = bundle
	return true
}
