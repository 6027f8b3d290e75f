package statusserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// BodyLimit is the size of the largest report, in bytes.
const BodyLimit = 64 << 10

var (
	errTooLarge   = errors.New("the report is larger than 64 KiB")
	errMalformed  = errors.New("the report is not the JSON that it has to be")
	errIncomplete = errors.New("the report did not arrive")
)

// Report is the body of a request, and of the answer.
type Report struct {
	// TrainerStatus replaces the TrainJob's whole trainerStatus; nil changes nothing.
	TrainerStatus *trainerv1alpha1.TrainerStatus `json:"trainerStatus,omitempty"`
}

// readReport reads a report from a request's body. Nothing is read beyond the limit.
func readReport(writer http.ResponseWriter, request *http.Request) (Report, error) {
	content, err := io.ReadAll(http.MaxBytesReader(writer, request.Body, BodyLimit))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return Report{}, errTooLarge
	}
	if err != nil {
		return Report{}, fmt.Errorf("%w: %w", errIncomplete, err)
	}
	return ParseReport(content)
}

// ParseReport reads a report. Unknown fields are passed over, as by Kubeflow Trainer: its SDK may be newer than we are.
// The CRD restricts the values.
func ParseReport(content []byte) (Report, error) {
	var report Report
	if err := json.Unmarshal(content, &report); err != nil {
		return Report{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if status := report.TrainerStatus; status != nil && !printable(status.LastUpdatedTime.Time) {
		return Report{}, fmt.Errorf("%w: lastUpdatedTime is outside of the years 0 to 9999 in UTC", errMalformed)
	}
	return report, nil
}

// printable reports whether an instant can be read again after it was written: an offset from UTC can move it out of
// the years that have four digits, and a TrainJob with such a text could not be read by any client.
func printable(instant time.Time) bool {
	year := instant.UTC().Year()
	return year >= 0 && year <= 9999
}
