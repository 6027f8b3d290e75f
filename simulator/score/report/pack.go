package report

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
)

// packed is a value as JSON, compressed, as text that can stand in a page.
func packed(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encoding the page's data: %w", err)
	}
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = zip.Write(text)
	}
	if err == nil {
		err = zip.Close()
	}
	if err != nil {
		return "", fmt.Errorf("compressing the page's data: %w", err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes()), nil
}

// round rounds to decimals: pages need not be longer for digits that are not seen.
func round(v float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(v*scale) / scale
}

// rounded rounds a column.
func rounded(column []float64, decimals int) []float64 {
	out := make([]float64, len(column))
	for i, v := range column {
		out[i] = round(v, decimals)
	}
	return out
}
