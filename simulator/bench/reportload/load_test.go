package reportload_test

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/controller/statusserver"
	"github.com/lockstep-project/lockstep/simulator/bench/reportload"
)

// Twenty jobs report each 50 ms, each from its own address, with reports that the status server accepts. Refused
// reports are counted, and not as accepted.
func TestLoad_Run(t *testing.T) {
	const jobs, every, lasting = 20, 50 * time.Millisecond, time.Second
	var mu sync.Mutex
	addresses, accepted := map[string]bool{}, map[int]int{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		body, err := statusserver.ParseReport(content)
		if err != nil || body.TrainerStatus == nil {
			t.Errorf("%s is no report: %v", content, err)
			return
		}
		if err := statusserver.Validate("train", body.TrainerStatus); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		addresses[host] = true
		if r.Header.Get("Authorization") == "Bearer refused" {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	reporters := []reportload.Reporter{{Number: 9, URL: server.URL, Token: "refused"}}
	for i := range jobs - 1 {
		reporters = append(reporters, reportload.Reporter{Number: 10 + i, URL: server.URL, Token: "taken"})
	}
	ctx, cancel := context.WithTimeout(t.Context(), lasting)
	defer cancel()
	var answers reportload.Answers
	reportload.Load{
		Every: every, Checkpoint: time.Minute, Roots: roots, Clock: clock.RealClock{},
		Sent: func(job int, _ time.Time) {
			mu.Lock()
			defer mu.Unlock()
			accepted[job]++
		},
	}.Run(ctx, reporters, &answers)

	codes, took := answers.Reset()
	taken := 0
	for job, count := range accepted {
		taken += count
		if job == 9 || count > int(lasting/every)+1 {
			t.Errorf("%d reports of job %d were accepted", count, job)
		}
	}
	if codes[http.StatusOK] != taken || codes[http.StatusTooManyRequests] == 0 ||
		len(took) != taken+codes[http.StatusTooManyRequests] {
		t.Errorf("answers %v and %d durations, %d reports accepted", codes, len(took), taken)
	}
	if len(accepted) != jobs-1 || len(addresses) != jobs {
		t.Errorf("%d jobs reported, and from %d addresses; want %d and %d", len(accepted), len(addresses), jobs-1, jobs)
	}
	if codes, _ = answers.Reset(); len(codes) != 0 {
		t.Errorf("%v after a reset", codes)
	}
}
