package trainjob

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/controller/framework"
	"github.com/lockstep-project/lockstep/controller/zmqcert"
)

// errSecretKind indicates a plan that wants a Secret of an unknown kind.
var errSecretKind = errors.New("unknown kind of Secret")

// newSecret returns a Secret with fresh keys of a kind, without metadata. Pods that run could not reach those that
// start with other keys, so it may not be changed.
func newSecret(kind framework.SecretKind, job string) (*corev1.Secret, error) {
	secret := &corev1.Secret{Immutable: new(true)}
	switch kind {
	case framework.SSHKeys:
		private, public, err := newSSHKeys()
		if err != nil {
			return nil, err
		}
		secret.Type = corev1.SecretTypeSSHAuth
		secret.Data = map[string][]byte{corev1.SSHAuthPrivateKey: private, framework.SSHPublicKey: public}
	case framework.CURVECertificate:
		certificate, err := zmqcert.Certificate(job, rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("making a CURVE certificate: %w", err)
		}
		secret.Type = corev1.SecretTypeOpaque
		secret.Data = map[string][]byte{framework.CURVEFile: []byte(certificate)}
	default:
		return nil, fmt.Errorf("%w: %s", errSecretKind, kind)
	}
	return secret, nil
}

// newSecretSuffix is a random end for the names of Secrets: 130 bits, as a part of a Kubernetes name.
func newSecretSuffix() string { return strings.ToLower(rand.Text()) }

// newSSHKeys makes a pair of ECDSA keys on P-521: the private one in PEM, the public one as a line of authorized_keys.
func newSSHKeys() (private, public []byte, err error) {
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
