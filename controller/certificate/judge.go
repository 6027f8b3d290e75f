package certificate

import (
	"crypto/x509"
	"maps"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The keys of the Secret. AuthorityCert holds the authority's certificate first, and after it earlier ones that are
// still valid, because certificates that they signed are still served.
const (
	AuthorityCert = "ca.crt"
	AuthorityKey  = "ca.key"
	ServingCert   = corev1.TLSCertKey
	ServingKey    = corev1.TLSPrivateKeyKey
)

// How long certificates are valid; each is renewed at two thirds of it.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	servingLife   = 365 * 24 * time.Hour
)

const (
	// backdate is the time by which a certificate is valid before it is made, for clocks that are behind ours.
	backdate = time.Hour
	// settle is the age at which an authority may sign the successor of a certificate that is still good: by then it is
	// in every bundle.
	settle = time.Hour
)

// Judgement lists the renewals that a Secret's data needs.
type Judgement struct {
	// NewAuthority and NewServing are set for certificates that have to be created. A new authority alone leaves the
	// serving certificate unchanged: the earlier authority stays in the bundle while it is valid.
	NewAuthority, NewServing bool
	// Why is for the log; empty when nothing has to be done.
	Why string
	// Again is the earliest instant at which the judgement, or the bundle, can be another one.
	Again time.Time
}

// Judge judges a Secret's data. Hosts are the names and addresses for which the serving certificate must be good.
func Judge(data map[string][]byte, hosts []string, now time.Time) Judgement {
	authority, authorityFault := readAuthority(data, now)
	serving, servingFault := readServing(data, hosts, now)
	// Both must be usable before one may be due: a certificate that is still good waits until a new authority has
	// settled.
	if authorityFault == "" && !now.Before(renewal(authority)) {
		authorityFault = "the authority is due for renewal"
	}
	if authorityFault != "" || servingFault != "" {
		return Judgement{
			NewAuthority: authorityFault != "", NewServing: servingFault != "", Again: now,
			Why: strings.Trim(authorityFault+"; "+servingFault, "; "),
		}
	}
	due := earliest(serving.NotAfter, latest(renewal(serving), authority.NotBefore.Add(backdate+settle)))
	if !now.Before(due) {
		return Judgement{NewServing: true, Again: now, Why: "the serving certificate is due for renewal"}
	}
	again := earliest(due, renewal(authority))
	for _, trusted := range trustedAuthorities(data, now) {
		again = earliest(again, trusted.NotAfter.Add(time.Second)) // its last second is still its own
	}
	return Judgement{Again: again}
}

// Renew creates the certificates of a judgement and returns the Secret's new data. Other keys of the Secret stay.
func Renew(data map[string][]byte, judgement Judgement, hosts []string, now time.Time) (map[string][]byte, error) {
	renewed := maps.Clone(data)
	if renewed == nil {
		renewed = map[string][]byte{}
	}
	if judgement.NewAuthority {
		made, err := newAuthority(now)
		if err != nil {
			return nil, err
		}
		renewed[AuthorityCert] = append(made.cert, Bundle(data, now)...)
		renewed[AuthorityKey] = made.key
	}
	if judgement.NewServing {
		made, err := newServing(renewed, hosts, now)
		if err != nil {
			return nil, err
		}
		renewed[ServingCert], renewed[ServingKey] = made.cert, made.key
	}
	return renewed, nil
}

// Bundle returns the certificates that clients have to trust: the authority's and earlier ones that are still valid, as
// PEM.
func Bundle(data map[string][]byte, now time.Time) []byte {
	var bundle []byte
	for _, authority := range trustedAuthorities(data, now) {
		bundle = append(bundle, encode(typeCertificate, authority.Raw)...)
	}
	return bundle
}

// Hosts are the names under which a Service is called, and the host if it is one that a certificate can name. Replicas
// that share a Secret must agree on them.
func Hosts(service types.NamespacedName, host string) []string {
	name := service.Name + "." + service.Namespace + ".svc"
	hosts := []string{name, name + ".cluster.local"}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return hosts
	}
	return append(hosts, host)
}

// renewal returns the time at which two thirds of a certificate's life have passed.
func renewal(cert *x509.Certificate) time.Time {
	return cert.NotBefore.Add(cert.NotAfter.Sub(cert.NotBefore) / 3 * 2)
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
