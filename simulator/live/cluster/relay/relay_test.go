package relay_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/live/cluster/relay"
)

// echo answers each line with itself, on a free port.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// A silent relay takes connections and words, answers nothing, and answers all of it afterwards.
func TestRelay_Silence(t *testing.T) {
	server := echo(t)
	r, err := relay.Listen(t.Context(), "127.0.0.1:0", func() string { return server })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	say := func(conn net.Conn, word string) {
		t.Helper()
		if _, err := io.WriteString(conn, word+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(conn net.Conn, patience time.Duration) string {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		line, _ := bufio.NewReader(conn).ReadString('\n')
		return line
	}
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", r.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	old := dial()
	say(old, "before")
	if got := hear(old, 5*time.Second); got != "before\n" {
		t.Fatalf("before the silence: %q", got)
	}
	r.Silence()
	young := dial()
	for _, conn := range []net.Conn{old, young} {
		say(conn, "during")
		if got := hear(conn, 100*time.Millisecond); got != "" {
			t.Errorf("in the silence: %q", got)
		}
	}
	r.Resume()
	for _, conn := range []net.Conn{old, young} {
		if got := hear(conn, 5*time.Second); got != "during\n" {
			t.Errorf("after the silence: %q", got)
		}
	}
	r.Close()
	if got := hear(old, 5*time.Second); got != "" {
		t.Errorf("after its end: %q", got)
	}
}
