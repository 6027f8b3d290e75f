package certificate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errNoEntry indicates webhook configurations without an entry for this Service: the API server would not trust the
// certificate, and every request that they match would fail.
var errNoEntry = errors.New("no entry calls this Service")

// publish writes the bundle into the webhook configurations where it differs. Configurations without an entry for us
// are an error; absent ones may be installed later.
func (k *Keeper) publish(ctx context.Context, bundle []byte) error {
	var faults []error
	found, ours := 0, 0
	trust := func(clients ...*admissionregistrationv1.WebhookClientConfig) bool {
		found++
		changed := false
		for _, entry := range clients {
			if k.calls(entry) {
				ours++
				changed = changed || !bytes.Equal(entry.CABundle, bundle)
				entry.CABundle = bundle
			}
		}
		return changed
	}
	for _, name := range k.Mutating {
		configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
		faults = append(faults, k.patch(ctx, name, configuration, func() bool {
			var clients []*admissionregistrationv1.WebhookClientConfig
			for i := range configuration.Webhooks {
				clients = append(clients, &configuration.Webhooks[i].ClientConfig)
			}
			return trust(clients...)
		}))
	}
	for _, name := range k.Validating {
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		faults = append(faults, k.patch(ctx, name, configuration, func() bool {
			var clients []*admissionregistrationv1.WebhookClientConfig
			for i := range configuration.Webhooks {
				clients = append(clients, &configuration.Webhooks[i].ClientConfig)
			}
			return trust(clients...)
		}))
	}
	if found > 0 && ours == 0 {
		faults = append(
			faults,
			fmt.Errorf("webhook configurations %v: %w: %s; mend them or certManagement.webhookServiceName",
				slices.Concat(k.Mutating, k.Validating), errNoEntry, k.Service),
		)
	}
	return errors.Join(faults...)
}

// patch reads a configuration and writes the changes of edit, unless it has changed meanwhile.
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

// calls reports whether an entry of our configurations calls us: it does unless it names a foreign Service; one with a
// URL does, as it has to outside of a cluster.
func (k *Keeper) calls(client *admissionregistrationv1.WebhookClientConfig) bool {
	service := client.Service
	return service == nil || service.Name == k.Service.Name && service.Namespace == k.Service.Namespace
}
