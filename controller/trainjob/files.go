package trainjob

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/framework"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// applyFiles makes what the job's pods mount: its ConfigMaps, and its keys where they are absent.
func (r *Reconciler) applyFiles(ctx context.Context, job *trainerv1alpha1.TrainJob, planned plan.Plan) error {
	for _, config := range planned.ConfigMaps {
		if err := r.applyObject(ctx, config); err != nil {
			return err
		}
	}
	for _, name := range planned.Keys {
		if err := r.ensureKeys(ctx, job, name); err != nil {
			return err
		}
	}
	return nil
}

// ensureKeys creates a Secret with a fresh pair of keys unless it is there. It is read past the cache: the controller has
// no business to keep every Secret of the cluster in its memory.
func (r *Reconciler) ensureKeys(ctx context.Context, job *trainerv1alpha1.TrainJob, name string) error {
	var found corev1.Secret
	key := client.ObjectKey{Namespace: job.Namespace, Name: name}
	err := r.Live.Get(ctx, key, &found)
	switch {
	case err == nil && !metav1.IsControlledBy(&found, job):
		return fmt.Errorf("secret %s: %w", key, ErrForeign)
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("getting Secret %s: %w", key, err)
	}
	private, public, err := newKeys()
	if err != nil {
		return fmt.Errorf("making the keys of Secret %s: %w", key, err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, OwnerReferences: plan.Owners(job)},
		Type:       corev1.SecretTypeSSHAuth, Immutable: new(true),
		Data: map[string][]byte{corev1.SSHAuthPrivateKey: private, framework.SSHPublicKey: public},
	}
	if err := r.Client.Create(ctx, secret, client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("creating Secret %s: %w", key, err)
	}
	return nil
}

// newKeys makes a pair of ECDSA keys on P-521: the private one in PEM, the public one as a line of authorized_keys.
func newKeys() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating a key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the private key: %w", err)
	}
	line, err := ssh.NewPublicKey(&key.PublicKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), ssh.MarshalAuthorizedKey(line), nil
}
