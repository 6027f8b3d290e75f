package certificate_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/controller/certificate"
)

const day = 24 * time.Hour

var (
	birth = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	hosts = certificate.Hosts(types.NamespacedName{Namespace: "ns", Name: "webhook"}, "127.0.0.1")
)

// made is the data of a Secret that was made at an instant from nothing.
func made(t *testing.T, at time.Time) map[string][]byte {
	t.Helper()
	return renewed(t, nil, at)
}

func renewed(t *testing.T, data map[string][]byte, at time.Time) map[string][]byte {
	t.Helper()
	next, err := certificate.Renew(data, certificate.Judge(data, hosts, at), hosts, at)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// with is a copy of data in which one value is replaced.
func with(data map[string][]byte, key, value string) map[string][]byte {
	changed := maps.Clone(data)
	changed[key] = []byte(value)
	return changed
}

// refused returns the reason why a client that trusts the bundle refuses the certificate, for each name; empty if it
// does not.
func refused(t *testing.T, bundle []byte, data map[string][]byte, at time.Time) string {
	t.Helper()
	pair, err := tls.X509KeyPair(data[certificate.ServingCert], data[certificate.ServingKey])
	if err != nil {
		return err.Error()
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	for _, host := range hosts {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: at}); err != nil {
			return err.Error()
		}
	}
	return ""
}

func TestJudge_NamesWhatIsDue(t *testing.T) {
	fresh, other := made(t, birth), made(t, birth)
	const both, authority, serving = "authority and serving", "authority", "serving"
	const ca, caKey, cert, key = certificate.AuthorityCert, certificate.AuthorityKey,
		certificate.ServingCert, certificate.ServingKey
	for name, test := range map[string]struct {
		data  map[string][]byte
		hosts []string
		at    time.Duration
		due   string
		why   string
	}{
		"nothing is there":          {data: nil, due: both, why: "there is no authority"},
		"fresh":                     {data: fresh},
		"a clock behind":            {data: fresh, at: -59 * time.Minute},
		"day 243":                   {data: fresh, at: 243 * day},
		"two thirds of a year":      {data: fresh, at: 244 * day, due: serving, why: "due for renewal"},
		"the last day":              {data: fresh, at: 364 * day, due: serving, why: "due for renewal"},
		"serving has expired":       {data: fresh, at: 366 * day, due: serving, why: "expired"},
		"two thirds of ten years":   {data: fresh, at: 2434 * day, due: both, why: "authority is due"},
		"all has expired":           {data: fresh, at: 3651 * day, due: both, why: "not valid now"},
		"made in the future":        {data: fresh, at: -2 * time.Hour, due: both, why: "not valid now"},
		"garbage authority":         {data: with(fresh, ca, "x"), due: both, why: "cannot be read"},
		"garbage authority key":     {data: with(fresh, caKey, "x"), due: authority, why: "cannot be read"},
		"another authority's key":   {data: with(fresh, caKey, string(other[caKey])), due: authority, why: "cannot be read"},
		"garbage serving":           {data: with(fresh, cert, "x"), due: serving, why: "cannot be read"},
		"garbage serving key":       {data: with(fresh, key, "x"), due: serving, why: "cannot be read"},
		"serving is missing":        {data: with(fresh, cert, ""), due: serving, why: "no serving certificate"},
		"other names":               {data: fresh, hosts: []string{"elsewhere.ns.svc"}, due: serving, why: "other names"},
		"other address":             {data: fresh, hosts: []string{"127.0.0.2"}, due: serving, why: "other names"},
		"signed by somebody else":   {data: mixed(fresh, other), due: serving, why: "would be refused"},
		"serving as authority":      {data: authorityIsServing(fresh), due: both, why: "is none"},
		"an authority that follows": {data: withEarlier(fresh, other)},
	} {
		t.Run(name, func(t *testing.T) {
			if test.hosts == nil {
				test.hosts = hosts
			}
			now := birth.Add(test.at)
			got := certificate.Judge(test.data, test.hosts, now)
			if got.NewAuthority != strings.Contains(test.due, authority) ||
				got.NewServing != strings.Contains(test.due, serving) ||
				!strings.Contains(got.Why, test.why) || (test.why == "") != (got.Why == "") {
				t.Errorf("got %+v, want that %q is due because of %q", got, test.due, test.why)
			}
			if strings.Contains(got.Why, "\n") {
				t.Errorf("%q is not one line", got.Why)
			}
			before := maps.Clone(test.data)
			data, err := certificate.Renew(test.data, got, test.hosts, now)
			if err != nil {
				t.Fatal(err)
			}
			if !maps.EqualFunc(before, test.data, bytes.Equal) {
				t.Error("the data that were passed in have changed")
			}
			if again := certificate.Judge(data, test.hosts, now); again.Why != "" {
				t.Errorf("after renewal: %s", again.Why)
			}
		})
	}
}

// mixed has the authority of one Secret and the serving certificate of another.
func mixed(authority, serving map[string][]byte) map[string][]byte {
	data := maps.Clone(serving)
	data[certificate.AuthorityCert] = authority[certificate.AuthorityCert]
	data[certificate.AuthorityKey] = authority[certificate.AuthorityKey]
	return data
}

func authorityIsServing(data map[string][]byte) map[string][]byte {
	changed := maps.Clone(data)
	changed[certificate.AuthorityCert] = data[certificate.ServingCert]
	changed[certificate.AuthorityKey] = data[certificate.ServingKey]
	return changed
}

// withEarlier has an earlier authority that signed the serving certificate, behind the present one.
func withEarlier(authority, earlier map[string][]byte) map[string][]byte {
	data := mixed(authority, earlier)
	data[certificate.AuthorityCert] = append(bytes.Clone(authority[certificate.AuthorityCert]),
		earlier[certificate.AuthorityCert]...)
	return data
}

// TestJudge_ThirtyYearsOfRenewals lives through thirty years of renewals: a client with the bundle from before a
// renewal trusts the certificate served after it, and the judgement holds until the instant that it names.
func TestJudge_ThirtyYearsOfRenewals(t *testing.T) {
	data, now := made(t, birth), birth
	trusted := certificate.Bundle(data, now)
	authorities, servings := 0, 0
	for now.Before(birth.Add(30 * 365 * day)) {
		judgement := certificate.Judge(data, hosts, now)
		if judgement.Why == "" {
			if !judgement.Again.After(now) {
				t.Fatalf("%s: nothing is due, and again at %s", now, judgement.Again)
			}
			for _, at := range []time.Time{now.Add(judgement.Again.Sub(now) / 2), judgement.Again.Add(-time.Second)} {
				if early := certificate.Judge(data, hosts, at); early.Why != "" {
					t.Fatalf("%s: %s is due before %s", at, early.Why, judgement.Again)
				}
			}
			now = judgement.Again
			trusted = certificate.Bundle(data, now) // the last look before the renewal
			continue
		}
		data = renewed(t, data, now)
		if judgement.NewAuthority {
			authorities++
		}
		if judgement.NewServing {
			servings++
		}
		if why := refused(t, trusted, data, now); why != "" {
			t.Fatalf("%s (%s): a client with the bundle of before: %s", now, judgement.Why, why)
		}
		if why := refused(t, certificate.Bundle(data, now), data, now); why != "" {
			t.Fatalf("%s (%s): a client with the bundle of now: %s", now, judgement.Why, why)
		}
	}
	if authorities != 4 || servings != 45 {
		t.Errorf(
			"%d authorities and %d serving certificates were renewed in thirty years, want 4 and 45",
			authorities,
			servings,
		)
	}
}

func TestBundle_HoldsValidAuthorities(t *testing.T) {
	count := func(bundle []byte) int { return bytes.Count(bundle, []byte("BEGIN CERTIFICATE")) }
	first := made(t, birth)
	turn := birth.Add(2434 * day)
	second := renewed(t, first, turn)
	if got := certificate.Bundle(
		second,
		turn,
	); count(got) != 2 ||
		!bytes.Contains(got, first[certificate.AuthorityCert]) {
		t.Errorf("after the renewal the bundle holds %d authorities, want both:\n%s", count(got), got)
	}
	block, _ := pem.Decode(second[certificate.AuthorityCert])
	if got := certificate.Bundle(
		second,
		birth.Add(3651*day),
	); count(got) != 1 ||
		!bytes.Equal(got, pem.EncodeToMemory(block)) {
		t.Errorf(
			"after the end of the first the bundle holds %d authorities, want the second only:\n%s",
			count(got),
			got,
		)
	}
	if got := certificate.Bundle(with(first, certificate.AuthorityCert, "garbage"), birth); len(got) > 0 {
		t.Errorf("a bundle of garbage: %s", got)
	}
}

func TestRenew_PreservesOtherKeys(t *testing.T) {
	if got := renewed(
		t,
		map[string][]byte{"note": []byte("ours")},
		birth,
	); string(got["note"]) != "ours" ||
		len(got) != 5 {
		t.Errorf("%d keys, note %q; want the note and four keys", len(got), got["note"])
	}
}

func TestHosts(t *testing.T) {
	service := types.NamespacedName{Namespace: "ns", Name: "webhook"}
	for host, want := range map[string]string{
		"": "", "0.0.0.0": "", "::": "", "10.0.0.1": " 10.0.0.1", "::1": " ::1", "node-1.example": " node-1.example",
	} {
		got := strings.Join(certificate.Hosts(service, host), " ")
		if got != "webhook.ns.svc webhook.ns.svc.cluster.local"+want {
			t.Errorf("host %q: %s", host, got)
		}
	}
}
