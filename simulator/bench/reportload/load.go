package reportload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Reporter is one job that reports.
type Reporter struct {
	// Number is the job's, and URL and Token are those of its pod.
	Number     int
	URL, Token string
}

// Load configures the reports of jobs.
type Load struct {
	// Every is the time between two reports of a job; jobs begin at different instants of it.
	Every time.Duration
	// Checkpoint is the time between two checkpoints of a job, which a scheduler wants to know at once.
	Checkpoint time.Duration
	// Fresh makes a connection for each report, as Python's urllib does; otherwise each job reuses its own.
	Fresh bool
	Roots *x509.CertPool
	Clock clock.Clock
	// Sent is called after each report that was accepted.
	Sent func(job int, at time.Time)
}

// patience is that of Kubeflow's callback.
const patience = 10 * time.Second

// Run reports for all jobs until ctx ends, and counts the answers.
func (l Load) Run(ctx context.Context, jobs []Reporter, counts *Answers) {
	var group sync.WaitGroup
	for _, job := range jobs {
		group.Go(func() { l.report(ctx, job, counts) })
	}
	group.Wait()
}

// report reports for one job, from an address of its own: each pod has one.
func (l Load) report(ctx context.Context, job Reporter, counts *Answers) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: address(job.Number)}}
	transport := &http.Transport{
		DialContext: dialer.DialContext, DisableCompression: true, DisableKeepAlives: l.Fresh, MaxIdleConns: 1,
		TLSClientConfig: &tls.Config{RootCAs: l.Roots, MinVersion: tls.VersionTLS12},
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: patience}
	chance := rand.New(rand.NewPCG(uint64(job.Number), 1))
	began := l.Clock.Now()
	next := began.Add(time.Duration(chance.Float64() * float64(l.Every)))
	training := newTraining(chance, began, l.Checkpoint)
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.Clock.After(next.Sub(l.Clock.Now())):
		}
		at := l.Clock.Now()
		code := post(context.WithoutCancel(ctx), client, job, training.report(at))
		counts.add(code, l.Clock.Since(at))
		if code == http.StatusOK {
			l.Sent(job.Number, at)
		}
		next = next.Add(l.Every)
	}
}

// address is a loopback address of the job's own.
func address(job int) net.IP {
	const first, perByte = 1 << 16, 1 << 8
	n := first + job
	return net.IPv4(127, byte(n/perByte/perByte), byte(n/perByte%perByte), byte(n%perByte))
}

// post sends a report and returns the code of the answer; 0 for none.
func post(ctx context.Context, client *http.Client, job Reporter, body string) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, job.URL, strings.NewReader(body))
	if err != nil {
		return 0
	}
	request.Header.Set("Authorization", "Bearer "+job.Token)
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer func() { _ = response.Body.Close() }()
	if _, err = io.Copy(io.Discard, response.Body); err != nil {
		return 0
	}
	return response.StatusCode
}

// training is the source of one job's reports: an hour or more of steady progress, an estimate that trembles, and a
// checkpoint now and then.
type training struct {
	chance     *rand.Rand
	start, end time.Time
	saving     time.Duration
	saved      time.Time
}

func newTraining(chance *rand.Rand, now time.Time, saving time.Duration) *training {
	return &training{
		chance: chance,
		start:  now,
		end:    now.Add(time.Hour + time.Duration(chance.Float64()*float64(time.Hour))),
		saving: saving,
		saved:  now.Add(-time.Duration(chance.Float64() * float64(saving))),
	}
}

func (t *training) report(now time.Time) string {
	if now.Sub(t.saved) >= t.saving {
		t.saved = now
	}
	const tremble = 0.02
	left := t.end.Sub(now).Seconds() * (1 + tremble*(2*t.chance.Float64()-1))
	percent := 100 * now.Sub(t.start).Seconds() / t.end.Sub(t.start).Seconds()
	return fmt.Sprintf(`{"trainerStatus":{"progressPercentage":%d,"estimatedRemainingSeconds":%d,"metrics":[`+
		`{"name":"loss","value":"%.4f"},{"name":"learning_rate","value":"0.0002"},{"name":"epoch","value":"1"},`+
		`{"name":"checkpoint_unix_seconds","value":"%d"},{"name":%q,"value":"%d"}],"lastUpdatedTime":%q}}`,
		int(percent), int(left), 2*t.chance.Float64(), t.saved.Unix(), SentMetric, now.UnixMilli(),
		now.UTC().Format(time.RFC3339))
}
