package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"time"
)

const (
	typeCertificate = "CERTIFICATE"
	typePrivateKey  = "PRIVATE KEY"
)

// readAuthority returns the signing authority, or a clause with the reason why it cannot be used.
func readAuthority(data map[string][]byte, now time.Time) (*x509.Certificate, string) {
	if len(data[AuthorityCert]) == 0 {
		return nil, "there is no authority"
	}
	pair, err := tls.X509KeyPair(data[AuthorityCert], data[AuthorityKey])
	switch {
	case err != nil:
		return nil, "the authority cannot be read: " + err.Error()
	case !isAuthority(pair.Leaf, now):
		return nil, "the authority is none, or is not valid now"
	default:
		return pair.Leaf, ""
	}
}

// readServing returns the serving certificate, or a clause with the reason why it cannot be served.
func readServing(data map[string][]byte, hosts []string, now time.Time) (*x509.Certificate, string) {
	if len(data[ServingCert]) == 0 {
		return nil, "there is no serving certificate"
	}
	pair, err := tls.X509KeyPair(data[ServingCert], data[ServingKey])
	if err != nil {
		return nil, "the serving certificate cannot be read: " + err.Error()
	}
	roots := x509.NewCertPool()
	for _, authority := range trustedAuthorities(data, now) {
		roots.AddCert(authority)
	}
	options := x509.VerifyOptions{
		Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if _, err = pair.Leaf.Verify(options); err != nil {
		return nil, "the serving certificate would be refused: " + err.Error()
	}
	for _, host := range hosts {
		if err = pair.Leaf.VerifyHostname(host); err != nil {
			return nil, "the serving certificate has other names: " + err.Error()
		}
	}
	return pair.Leaf, ""
}

// trustedAuthorities are the authorities of a Secret that are valid now, in their order; data that cannot be parsed is
// none.
func trustedAuthorities(data map[string][]byte, now time.Time) []*x509.Certificate {
	var trusted []*x509.Certificate
	rest := data[AuthorityCert]
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return trusted
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if block.Type == typeCertificate && err == nil && isAuthority(cert, now) {
			trusted = append(trusted, cert)
		}
	}
}

func isAuthority(cert *x509.Certificate, now time.Time) bool {
	return cert.IsCA && !now.Before(cert.NotBefore) && !now.After(cert.NotAfter)
}
