package report

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the library
	"fmt"
	"io"
)

// The library of charts.
const (
	// LibraryVersion is its release.
	LibraryVersion = "6.1.0"
	// LibrarySHA256 is the hash of dist/echarts.common.min.js of that release, uncompressed.
	LibrarySHA256 = "61f13280aba3161f77fc801bf5f9c786f55f10432153a0683fc5cc0700b013d5"
)

//go:embed echarts/echarts.common.min.js.gz
var library []byte

// Library is Apache ECharts' bundle "common", as its authors publish it.
func Library() ([]byte, error) {
	unzip, err := gzip.NewReader(bytes.NewReader(library))
	if err != nil {
		return nil, fmt.Errorf("decompressing the library of charts: %w", err)
	}
	text, err := io.ReadAll(unzip)
	if err != nil {
		return nil, fmt.Errorf("decompressing the library of charts: %w", err)
	}
	return text, nil
}
