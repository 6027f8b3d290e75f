package cluster

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"math/big"
	"net"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// The names under which controllers that manage their certificates look for things, in their Secrets and in their
// folders.
const (
	fileAuthority    = "ca.crt"
	fileAuthorityKey = "ca.key"
	fileCert         = "tls.crt"
	fileKey          = "tls.key"
)

// Serving names the objects for a controller that manages the certificate of its own webhooks.
type Serving struct {
	// Namespace holds the Secret with the certificate, and the Service for which the certificate is issued.
	Namespace, Secret, Service string
	// Authority is the common name of its own authority.
	Authority string
}

// keys are the certificate of a controller's webhooks and its authority, with their keys, in PEM by file name. They are
// such that the controller finds nothing to renew: it asks for an authority of its own, and for a certificate of the
// Service that its webhooks would have in a cluster; that it also holds for loopback is ours.
type keys map[string][]byte

func newKeys(of Serving) (keys, error) {
	authorityKey, authorityKeyPEM, err := newKey()
	if err != nil {
		return nil, err
	}
	authority, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: of.Authority}, authorityKey)
	if err != nil {
		return nil, fmt.Errorf("making authority %s: %w", of.Authority, err)
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, err
	}
	name := of.Service + "." + of.Namespace + ".svc"
	certificate, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{name},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, key.Public(), authorityKey)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	parsed, err := x509.ParseCertificate(certificate)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	made := keys{fileAuthorityKey: authorityKeyPEM, fileKey: keyPEM}
	for name, cert := range map[string]*x509.Certificate{fileAuthority: authority, fileCert: parsed} {
		if made[name], err = certutil.EncodeCertificates(cert); err != nil {
			return nil, fmt.Errorf("encoding the certificate of %s: %w", of.Service, err)
		}
	}
	return made, nil
}

// newKey makes a key, and its PEM in the form that controllers read.
func newKey() (*rsa.PrivateKey, []byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	content, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a key: %w", err)
	}
	return key, content, nil
}

// secret is the Secret in which a controller stores its certificate.
func (k keys) secret(of Serving) *unstructured.Unstructured {
	data := map[string]any{}
	for name, content := range k {
		data[name] = base64.StdEncoding.EncodeToString(content)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": data,
		"metadata": map[string]any{"namespace": of.Namespace, "name": of.Secret},
	}}
}
