package certificate_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-project/lockstep/controller/certificate"
)

var service = types.NamespacedName{Namespace: "ns", Name: "webhook"}

// newCluster is an API server with our two configurations: a mutating one that names our Service, and a validating one
// with a URL, our Service and a foreign Service. Hooks see every call before it is made.
func newCluster(hooks interceptor.Funcs) client.Client {
	entry := func(name, namespace string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Name: name, Namespace: namespace},
		}
	}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "defaulter"},
		Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "a", ClientConfig: entry("webhook", "ns")}},
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "validator"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "b", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1/b")}},
			{Name: "c", ClientConfig: entry("webhook", "ns")},
			{Name: "d", ClientConfig: entry("webhook", "elsewhere")},
			{Name: "e", ClientConfig: entry("other", "ns")},
		},
	}
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(mutating, validating).
		WithInterceptorFuncs(hooks).Build()
}

func newKeeper(cluster client.Client, clock *clocktesting.FakeClock) *certificate.Keeper {
	return &certificate.Keeper{
		Client: cluster, Clock: clock, Service: service, Hosts: hosts,
		Secret:   types.NamespacedName{Namespace: "ns", Name: "cert"},
		Mutating: []string{"defaulter", "absent"}, Validating: []string{"validator"},
	}
}

// bundles are the caBundles of all entries by the entry's name.
func bundles(t *testing.T, cluster client.Client) map[string][]byte {
	t.Helper()
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	if err := errors.Join(
		cluster.Get(t.Context(), client.ObjectKey{Name: "defaulter"}, &mutating),
		cluster.Get(t.Context(), client.ObjectKey{Name: "validator"}, &validating),
	); err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, webhook := range mutating.Webhooks {
		found[webhook.Name] = webhook.ClientConfig.CABundle
	}
	for _, webhook := range validating.Webhooks {
		found[webhook.Name] = webhook.ClientConfig.CABundle
	}
	return found
}

func secretOf(t *testing.T, cluster client.Client) *corev1.Secret {
	t.Helper()
	var secret corev1.Secret
	if err := cluster.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "cert"}, &secret); err != nil {
		t.Fatal(err)
	}
	return &secret
}

func check(t *testing.T, keeper *certificate.Keeper) {
	t.Helper()
	if _, err := keeper.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func servedBy(t *testing.T, keeper *certificate.Keeper) []byte {
	t.Helper()
	served, err := keeper.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return served.Certificate[0]
}

func TestKeeper_FirstCheckCreatesEverything(t *testing.T) {
	cluster := newCluster(interceptor.Funcs{})
	keeper := newKeeper(cluster, clocktesting.NewFakeClock(birth))
	if _, err := keeper.GetCertificate(nil); !errors.Is(err, certificate.ErrNotYet) {
		t.Errorf("before the first check: %v, want ErrNotYet", err)
	}
	check(t, keeper)
	secret := secretOf(t, cluster)
	if why := refused(t, certificate.Bundle(secret.Data, birth), secret.Data, birth); why != "" {
		t.Error(why)
	}
	servedBy(t, keeper)
	for name, bundle := range bundles(t, cluster) {
		want := secret.Data[certificate.AuthorityCert]
		if name == "d" || name == "e" {
			want = nil
		}
		if !bytes.Equal(bundle, want) {
			t.Errorf("the caBundle of %s is %q, want %q", name, bundle, want)
		}
	}
}

func TestKeeper_SecondCheckWritesNothing(t *testing.T) {
	writes := 0
	cluster := newCluster(interceptor.Funcs{
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			writes++
			return c.Patch(ctx, o, p, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			writes++
			return c.Update(ctx, o, opts...)
		},
	})
	keeper := newKeeper(cluster, clocktesting.NewFakeClock(birth))
	check(t, keeper)
	if writes != 2 {
		t.Errorf("%d patches at first, want one for each configuration", writes)
	}
	check(t, keeper)
	if writes != 2 {
		t.Errorf("%d writes after the second check, want no further one", writes)
	}
}

func TestKeeper_RepairsResetBundle(t *testing.T) {
	cluster := newCluster(interceptor.Funcs{})
	keeper := newKeeper(cluster, clocktesting.NewFakeClock(birth))
	check(t, keeper)
	want := bundles(t, cluster)
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	if err := cluster.Get(t.Context(), client.ObjectKey{Name: "validator"}, &validating); err != nil {
		t.Fatal(err)
	}
	validating.Webhooks[0].ClientConfig.CABundle = nil
	validating.Webhooks[1].ClientConfig.CABundle = []byte("somebody else's")
	if err := cluster.Update(t.Context(), &validating); err != nil {
		t.Fatal(err)
	}
	check(t, keeper)
	for name, bundle := range bundles(t, cluster) {
		if !bytes.Equal(bundle, want[name]) {
			t.Errorf("the caBundle of %s is %q, want %q", name, bundle, want[name])
		}
	}
}

// TestKeeper_ReplicasAgree lets a second replica write between the first one's read and its write.
func TestKeeper_ReplicasAgree(t *testing.T) {
	for name, at := range map[string]time.Time{"at the start": birth, "at a renewal": birth.Add(300 * day)} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(birth)
			var other *certificate.Keeper
			raced := 0
			race := func() {
				if other != nil && clock.Now().Equal(at) && raced == 0 {
					raced++
					check(t, other)
				}
			}
			cluster := newCluster(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					race()
					return c.Create(ctx, o, opts...)
				},
				Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
					race()
					return c.Update(ctx, o, opts...)
				},
			})
			other = newKeeper(cluster, clock)
			keeper := newKeeper(cluster, clock)
			check(t, keeper)
			clock.SetTime(at)
			check(t, keeper)
			if raced != 1 {
				t.Fatal("there was no race")
			}
			if !bytes.Equal(servedBy(t, keeper), servedBy(t, other)) {
				t.Error("the replicas serve different certificates")
			}
		})
	}
}

// TestKeeper_ConflictIsNoFault lets another client change a configuration between its reading and its writing.
func TestKeeper_ConflictIsNoFault(t *testing.T) {
	raced := false
	cluster := newCluster(interceptor.Funcs{
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			if !raced {
				raced = true
				var mutating admissionregistrationv1.MutatingWebhookConfiguration
				if err := c.Get(ctx, client.ObjectKey{Name: "defaulter"}, &mutating); err != nil {
					return err
				}
				mutating.Labels = map[string]string{"changed": "meanwhile"}
				if err := c.Update(ctx, &mutating); err != nil {
					return err
				}
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	check(t, newKeeper(cluster, clocktesting.NewFakeClock(birth)))
	if !raced || len(bundles(t, cluster)["a"]) == 0 {
		t.Error("the configuration was not changed meanwhile, or has no caBundle")
	}
}

// TestKeeper_ServesOnlyTrustedCertificates holds the order: until the bundles are written, the old certificate is
// served.
func TestKeeper_ServesOnlyTrustedCertificates(t *testing.T) {
	clock := clocktesting.NewFakeClock(birth)
	var fault error
	cluster := newCluster(interceptor.Funcs{
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			if fault != nil {
				return fault
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	keeper := newKeeper(cluster, clock)
	check(t, keeper)
	before := servedBy(t, keeper)

	fault = apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "y", errors.New("not now"))
	if err := cluster.Delete(t.Context(), secretOf(t, cluster)); err != nil {
		t.Fatal(err)
	}
	if _, err := keeper.Check(
		t.Context(),
	); err == nil ||
		!strings.Contains(err.Error(), "caBundle of webhook configuration defaulter") {
		t.Errorf("error %v, want one that names the caBundle and the configuration", err)
	}
	if !bytes.Equal(servedBy(t, keeper), before) {
		t.Error("a certificate is served that the API server does not trust")
	}
	fault = nil
	check(t, keeper)
	if bytes.Equal(servedBy(t, keeper), before) {
		t.Error("the new certificate is not served")
	}
}

func TestKeeper_FaultNamesTheSecret(t *testing.T) {
	cluster := newCluster(interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			if _, ok := o.(*corev1.Secret); ok {
				return apierrors.NewForbidden(
					schema.GroupResource{Resource: "secrets"},
					key.Name,
					errors.New("no role"),
				)
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	keeper := newKeeper(cluster, clocktesting.NewFakeClock(birth))
	if _, err := keeper.Check(
		t.Context(),
	); err == nil ||
		!strings.Contains(err.Error(), "keeping Secret ns/cert: reading: ") {
		t.Errorf("error %v", err)
	}
	if _, err := keeper.GetCertificate(nil); !errors.Is(err, certificate.ErrNotYet) {
		t.Errorf("%v, want ErrNotYet", err)
	}
}

// TestKeeper_StartRenewsInTime moves a fake clock and watches the certificate change, as it does within the running
// controller.
func TestKeeper_StartRenewsInTime(t *testing.T) {
	clock := clocktesting.NewFakeClock(birth)
	cluster := newCluster(interceptor.Funcs{})
	keeper := newKeeper(cluster, clock)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- keeper.Start(ctx) }()
	step := func(at time.Duration) []byte {
		for !clock.HasWaiters() {
			time.Sleep(time.Millisecond)
		}
		served := servedBy(t, keeper)
		clock.SetTime(birth.Add(at))
		return served
	}
	first := step(certificate.Period)
	second := step(244 * day)
	third := step(245 * day)
	if !bytes.Equal(first, second) || bytes.Equal(second, third) {
		t.Error("the certificate must change after two thirds of its life and not before")
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A Service of another name in a configuration file must not end in a certificate that is not trusted, without a
// report.
func TestKeeper_UncalledServiceIsError(t *testing.T) {
	keeper := newKeeper(newCluster(interceptor.Funcs{}), clocktesting.NewFakeClock(time.Now()))
	keeper.Service = types.NamespacedName{Namespace: "ns", Name: "kubeflow-trainer-controller-manager"}
	keeper.Validating = nil // its entry with a URL calls us
	_, err := keeper.Check(t.Context())
	if err == nil ||
		!strings.Contains(err.Error(), "no entry calls this Service: ns/kubeflow-trainer-controller-manager") {
		t.Errorf("error %v, want one that names the Service", err)
	}
}
