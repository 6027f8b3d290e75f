package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Period is the interval at which the Secret and the webhook configurations are read: three reads of single
	// objects. A replica can serve a certificate for that long after its Secret was deleted.
	Period = 15 * time.Second
	// pause is the time after which a check that failed is repeated.
	pause = time.Second
	// agreements is the number of times that a replica tries to write before it takes the others' races for a fault.
	agreements = 5
	// fieldOwner is the field manager of the keeper's writes.
	fieldOwner = "lockstep-controller-certificate"
)

var (
	// ErrNotYet indicates that there is no certificate to serve yet.
	ErrNotYet = errors.New("the webhooks have no certificate yet")
	// errRaces indicates that other writers were always faster.
	errRaces = errors.New("others change it all the time")
)

// Keeper renews the Secret, updates the webhook configurations of one controller, and serves the certificate. Every
// replica runs one: they agree by the Secret's resource version.
type Keeper struct {
	// Client reads past caches: the roles allow single objects only.
	Client client.Client
	Clock  clock.Clock
	// Secret is the name of the Secret with the certificates.
	Secret types.NamespacedName
	// Service is the one that the webhook configurations name.
	Service types.NamespacedName
	// Hosts are the names for which the serving certificate must be valid, as Hosts returns them.
	Hosts []string
	// Mutating and Validating name the webhook configurations; those that do not exist are passed over.
	Mutating, Validating []string

	served  atomic.Pointer[served]
	trusted atomic.Pointer[[]byte]
}

// served is a certificate in use and the PEM that it was read from.
type served struct {
	pem         []byte
	certificate *tls.Certificate
}

// GetCertificate is for tls.Config; it fails until the first check has passed.
func (k *Keeper) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if now := k.served.Load(); now != nil {
		return now.certificate, nil
	}
	return nil, ErrNotYet
}

// Trusted returns the certificates that clients other than the API server have to trust, as PEM; empty until the first
// check has passed.
func (k *Keeper) Trusted() []byte {
	if now := k.trusted.Load(); now != nil {
		return *now
	}
	return nil
}

// NeedLeaderElection is false: webhooks are served by all replicas.
func (*Keeper) NeedLeaderElection() bool { return false }

// Start checks until ctx ends.
func (k *Keeper) Start(ctx context.Context) error {
	for {
		again, err := k.Check(ctx)
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Webhook certificate not checked", "retryIn", pause)
			again = k.Clock.Now().Add(pause)
		}
		timer := k.Clock.NewTimer(min(Period, max(pause, again.Sub(k.Clock.Now()))))
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// Check updates the Secret, the webhook configurations and the served certificate, in this order: no client is served a
// certificate that the API server does not trust yet. It returns when it must be called again at the latest.
func (k *Keeper) Check(ctx context.Context) (time.Time, error) {
	now := k.Clock.Now()
	data, err := k.agree(ctx, now)
	if err != nil {
		return time.Time{}, fmt.Errorf("keeping Secret %s: %w", k.Secret, err)
	}
	bundle := Bundle(data, now)
	if err = retry.RetryOnConflict(retry.DefaultRetry, func() error { return k.publish(ctx, bundle) }); err != nil {
		return time.Time{}, fmt.Errorf("having the certificate trusted: %w", err)
	}
	k.trusted.Store(&bundle)
	if err = k.serve(ctx, data); err != nil {
		return time.Time{}, fmt.Errorf("serving the certificate of Secret %s: %w", k.Secret, err)
	}
	return Judge(data, k.Hosts, now).Again, nil
}

// agree returns data in which no renewal is due: the Secret's, or the renewed data that this replica was the first to
// write.
func (k *Keeper) agree(ctx context.Context, now time.Time) (map[string][]byte, error) {
	for range agreements {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.Secret.Namespace, Name: k.Secret.Name}}
		err := k.Client.Get(ctx, k.Secret, secret)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading: %w", err)
		}
		absent := err != nil
		judgement := Judge(secret.Data, k.Hosts, now)
		if judgement.Why == "" {
			return secret.Data, nil
		}
		if secret.Data, err = Renew(secret.Data, judgement, k.Hosts, now); err != nil {
			return nil, err
		}
		write := func() error { return k.Client.Update(ctx, secret, client.FieldOwner(fieldOwner)) }
		if absent {
			write = func() error { return k.Client.Create(ctx, secret, client.FieldOwner(fieldOwner)) }
		}
		err = write()
		switch {
		case err == nil:
			klog.FromContext(ctx).Info("Webhook certificate made", "secret", k.Secret, "reason", judgement.Why)
			return secret.Data, nil
		case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("writing: %w", err)
		}
	}
	return nil, errRaces
}

// serve puts the Secret's certificate into use.
func (k *Keeper) serve(ctx context.Context, data map[string][]byte) error {
	now := k.served.Load()
	if now != nil && bytes.Equal(now.pem, data[ServingCert]) {
		return nil
	}
	certificate, err := tls.X509KeyPair(data[ServingCert], data[ServingKey])
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	k.served.Store(&served{pem: data[ServingCert], certificate: &certificate})
	klog.FromContext(ctx).Info("Webhook certificate in use", "until", certificate.Leaf.NotAfter)
	return nil
}
