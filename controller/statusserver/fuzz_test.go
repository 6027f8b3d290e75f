package statusserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/controller/statusserver"
)

// FuzzBody checks that any body is answered with the documented code, that only a report with content is held, and that
// the echo repeats the parsed report.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{}`, `null`, `[]`, `{"trainerStatus":{}}`, `{"trainerStatus":null}`, progress(50), progress(-1), `{"trainerStatus":`,
		`{"TRAINERSTATUS":{"metrics":[{"name":"checkpoint_unix_seconds","value":"1732266000.5"}]}}`, `{"a":` + "\x00",
		`{"trainerStatus":{"progressPercentage":1e2,"lastUpdatedTime":"2026-11-22T10:00:00+14:00"}}`,
		`{"trainerStatus":{"lastUpdatedTime":"9999-12-31T23:59:59-01:00"}}`, `{"trainerStatus":{"metrics":[null,{}]}}`,
	} {
		f.Add([]byte(body))
	}
	w := newFixture(f, family("train")...)
	w.writing = func(context.Context, string) error { return errStored }
	accepted := func() (count float64) {
		for _, outcome := range []string{"held", "older", "unchanged"} {
			count += w.metric("lockstep_status_server_reports_total{outcome=\"" + outcome + "\"}")
		}
		return count
	}
	whose := tokenWith(map[string]any{"aud": audience(), "exp": int64(1e11)}, "team-a/train-pod/train-pod-uid")
	f.Fuzz(func(t *testing.T, body []byte) {
		w.t = t
		w.clock.SetTime(w.clock.Now().Add(time.Second)) // or the job's limit would answer
		before := accepted()
		report, err := statusserver.ParseReport(body)
		want, holds := http.StatusOK, 1.0
		switch {
		case len(body) > statusserver.BodyLimit:
			want, holds = http.StatusRequestEntityTooLarge, 0
		case err != nil:
			want, holds = http.StatusUnprocessableEntity, 0
		case report.TrainerStatus == nil:
			holds = 0
		case statusserver.Validate("train", report.TrainerStatus) != nil:
			want, holds = http.StatusUnprocessableEntity, 0
		}
		code, answer := w.post("train", whose, string(body))
		w.pass(0)
		held := accepted() - before
		if code != want || held != holds || !json.Valid([]byte(answer)) {
			t.Fatalf("%q: answer %d %s, %v reports held; want %d and %v", body, code, answer, held, want, holds)
		}
		if code != http.StatusOK {
			return
		}
		again, err := statusserver.ParseReport([]byte(answer))
		if err != nil {
			t.Fatalf("%q is echoed as %q, which is none: %v", body, answer, err)
		}
		if second, _ := json.Marshal(again); string(second) != answer {
			t.Fatalf("%q is echoed as %q, and that as %q", body, answer, second)
		}
	})
}
