package report_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// browser is a headless Chromium that is spoken to through two pipes (Chrome DevTools Protocol, messages end with a
// zero byte).
type browser struct {
	t       *testing.T
	to      io.Writer
	answers chan message
	session string
	last    int
	// complaints are exceptions, console messages and log entries of the page, requests the addresses that it asked
	// for.
	complaints, requests []string
}

type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// open starts Chromium with an empty page. Without one, the test is skipped, but not where CI counts on it.
func open(t *testing.T) *browser {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}
	if program == "" && os.Getenv("CI") == "true" {
		t.Fatal("there is no chromium: install the package (.ci/run does)")
	}
	if program == "" {
		t.Skip("there is no chromium here; install it to try the page")
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, its, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(
		program,
		"--headless=new",
		"--no-sandbox",
		"--disable-gpu",
		"--disable-dev-shm-usage",
		"--no-first-run",
		"--disable-background-networking",
		"--disable-component-update",
		"--disable-extensions",
		"--hide-scrollbars",
		"--remote-debugging-pipe",
		"--user-data-dir="+t.TempDir(),
		"about:blank",
	)
	cmd.ExtraFiles = []*os.File{theirs, its}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	its.Close()
	b := &browser{t: t, to: ours, answers: make(chan message, 1000)}
	t.Cleanup(func() {
		b.session = ""
		b.send("Browser.close", nil)
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	go b.read(from)
	b.attach()
	return b
}

func (b *browser) read(from io.ReadCloser) {
	in := bufio.NewReader(from)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			close(b.answers)
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) == nil {
			b.answers <- m
		}
	}
}

// attach finds the page, and listens to everything that it says.
func (b *browser) attach() {
	var targets struct {
		Infos []struct{ TargetID, Type string } `json:"targetInfos"`
	}
	b.ask("Target.getTargets", nil, &targets)
	for _, info := range targets.Infos {
		if info.Type == "page" {
			var attached struct{ SessionID string }
			b.ask("Target.attachToTarget", map[string]any{"targetId": info.TargetID, "flatten": true}, &attached)
			b.session = attached.SessionID
		}
	}
	if b.session == "" {
		b.t.Fatal("the browser has no page")
	}
	for _, domain := range []string{"Runtime", "Log", "Network", "Page"} {
		b.ask(domain+".enable", nil, nil)
	}
}

func (b *browser) send(method string, params any) {
	b.last++
	text, err := json.Marshal(params)
	if err != nil {
		b.t.Fatal(err)
	}
	text, err = json.Marshal(message{ID: b.last, Session: b.session, Method: method, Params: text})
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	if err != nil && !errors.Is(err, os.ErrClosed) {
		b.t.Errorf("%s: %v", method, err)
	}
}

// ask waits for the answer; messages that the page sends meanwhile are recorded.
func (b *browser) ask(method string, params, result any) {
	b.t.Helper()
	if params == nil {
		params = map[string]any{}
	}
	b.send(method, params)
	deadline := time.After(time.Minute)
	for {
		select {
		case m, ok := <-b.answers:
			if !ok {
				b.t.Fatalf("%s: the browser is gone", method)
			}
			b.note(m)
			if m.ID != b.last {
				continue
			}
			if m.Error != nil {
				b.t.Fatalf("%s: %s", method, m.Error)
			}
			if result != nil {
				if err := json.Unmarshal(m.Result, result); err != nil {
					b.t.Fatal(err)
				}
			}
			return
		case <-deadline:
			b.t.Fatalf("%s: no answer", method)
		}
	}
}

func (b *browser) note(m message) {
	switch m.Method {
	case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded":
		b.complaints = append(b.complaints, m.Method+" "+string(m.Params))
	case "Network.requestWillBeSent":
		var request struct{ Request struct{ URL string } }
		if json.Unmarshal(m.Params, &request) == nil {
			b.requests = append(b.requests, request.Request.URL)
		}
	}
}

// evaluate is the value of an expression in the page.
func (b *browser) evaluate(expression string) any {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	b.ask("Runtime.evaluate", map[string]any{
		"expression": expression, "returnByValue": true, "awaitPromise": true,
	}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, answer.ExceptionDetails)
	}
	return answer.Result.Value
}

// show opens a file at a width, in a color scheme, and waits until it has drawn.
func (b *browser) show(file, scheme string, width int) {
	b.t.Helper()
	b.ask("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false,
	}, nil)
	b.ask("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]any{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil)
	b.ask("Page.navigate", map[string]any{"url": "file://" + file}, nil)
	for range 600 {
		if b.evaluate(`document.documentElement?.dataset.ready ?? ""`) == "true" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.t.Fatalf("the page was not ready in a minute; it said %v", b.complaints)
}

// keep saves pictures of the whole page in the folder LOCKSTEP_SCREENSHOTS, if it is set: each as high as wide.
func (b *browser) keep(name string) {
	b.t.Helper()
	dir := os.Getenv("LOCKSTEP_SCREENSHOTS")
	if dir == "" {
		return
	}
	width, _ := b.evaluate(`document.documentElement.clientWidth`).(float64)
	height, _ := b.evaluate(`document.documentElement.scrollHeight`).(float64)
	for part := range int(height/width) + 1 {
		var shot struct{ Data string }
		b.ask("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true, "clip": map[string]any{
			"x":      0,
			"y":      float64(part) * width,
			"width":  width,
			"height": min(width, height-float64(part)*width),
			"scale":  1,
		}}, &shot)
		b.save(filepath.Join(dir, fmt.Sprintf("%s-%d.png", name, part+1)), shot.Data)
	}
}

// print saves the page as it prints.
func (b *browser) print(name string) {
	b.t.Helper()
	var paper struct{ Data string }
	b.ask("Page.printToPDF", map[string]any{"preferCSSPageSize": true, "printBackground": true}, &paper)
	if !strings.HasPrefix(paper.Data, "JVBERi") { // %PDF
		b.t.Error("the page does not print")
	}
	if dir := os.Getenv("LOCKSTEP_SCREENSHOTS"); dir != "" {
		b.save(filepath.Join(dir, name+".pdf"), paper.Data)
	}
}

func (b *browser) save(name, data string) {
	b.t.Helper()
	content, err := base64.StdEncoding.DecodeString(data)
	if err == nil {
		err = os.WriteFile(name, content, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
