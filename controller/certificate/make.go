package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"time"
)

// pair is a certificate and its key, as PEM.
type pair struct {
	cert, key []byte
}

func newAuthority(now time.Time) (pair, error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "lockstep-webhook-authority"},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("making the authority's key: %w", err)
	}
	return sign(template, key, template, key)
}

// newServing makes a serving certificate, signed by the authority of data, which it does not outlive.
func newServing(data map[string][]byte, hosts []string, now time.Time) (pair, error) {
	authority, err := tls.X509KeyPair(data[AuthorityCert], data[AuthorityKey])
	if err != nil {
		return pair{}, fmt.Errorf("reading the authority: %w", err)
	}
	signer, ok := authority.PrivateKey.(crypto.Signer)
	if !ok {
		return pair{}, fmt.Errorf("reading the authority: a %T cannot sign", authority.PrivateKey)
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "lockstep-webhook"},
		NotBefore: now.Add(-backdate), NotAfter: earliest(now.Add(servingLife), authority.Leaf.NotAfter),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("making the serving key: %w", err)
	}
	return sign(template, key, authority.Leaf, signer)
}

// sign makes a certificate for key; crypto/x509 chooses the serial number.
func sign(template *x509.Certificate, key *ecdsa.PrivateKey, parent *x509.Certificate, by crypto.Signer) (pair, error) {
	cert, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		return pair{}, fmt.Errorf("signing a certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair{}, fmt.Errorf("encoding a key: %w", err)
	}
	return pair{cert: encode(typeCertificate, cert), key: encode(typePrivateKey, private)}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
