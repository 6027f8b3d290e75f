// Package relay forwards TCP connections on loopback, as a Service does, and can fall silent as a server that has
// stopped answering.
package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Relay forwards the connections of one port. While it is silent it accepts connections, and forwards nothing; data
// that was sent meanwhile arrives afterwards.
type Relay struct {
	listener net.Listener
	target   func() string

	mu    sync.Mutex
	open  chan struct{} // closed unless the relay is silent
	conns map[net.Conn]bool
	done  bool
}

// Listen forwards connections to an address on loopback to the address that target returns when they are opened. The
// caller calls Close.
func Listen(ctx context.Context, address string, target func() string) (*Relay, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	return Serve(ctx, listener, target), nil
}

// Serve forwards the connections of a listener, as Listen does. The caller calls Close, which closes the listener, too.
func Serve(ctx context.Context, listener net.Listener, target func() string) *Relay {
	r := &Relay{listener: listener, target: target, open: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(r.open)
	go r.accept(context.WithoutCancel(ctx))
	return r
}

// Address returns the address on which the relay listens.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Silence stops forwarding until Resume.
func (r *Relay) Silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.speak()
	r.open = make(chan struct{})
}

// Resume ends a silence.
func (r *Relay) Resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.speak()
}

// speak forwards waiting data. The caller holds the lock.
func (r *Relay) speak() {
	select {
	case <-r.open:
	default:
		close(r.open)
	}
}

// Close ends all connections.
func (r *Relay) Close() {
	_ = r.listener.Close() // accept ends
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = true
	r.speak()
	for conn := range r.conns {
		_ = conn.Close() // its copies end
	}
}

func (r *Relay) accept(ctx context.Context) {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		go r.forward(ctx, near)
	}
}

func (r *Relay) forward(ctx context.Context, near net.Conn) {
	defer r.forget(near)
	if !r.keep(near) {
		return
	}
	far, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.target())
	if err != nil {
		return // the client sees its connection end, as behind a Service without endpoints
	}
	defer r.forget(far)
	if !r.keep(far) {
		return
	}
	var copies sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		copies.Go(func() {
			_, err := io.Copy(gated{way[1], r}, way[0])
			if err != nil && !errors.Is(err, net.ErrClosed) {
				_ = way[0].Close() // a reset ends both directions
			}
			r.hangUp(way[1])
		})
	}
	copies.Wait()
}

// hangUp closes a connection's write side, so that its reader sees the end.
func (r *Relay) hangUp(conn net.Conn) {
	if half, ok := conn.(*net.TCPConn); ok {
		_ = half.CloseWrite() // an error means that it is closed already
	}
}

func (r *Relay) keep(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns[conn] = true
	return !r.done
}

func (r *Relay) forget(conn net.Conn) {
	_ = conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, conn)
}

// gated is a writer that waits while the relay is silent.
type gated struct {
	io.Writer

	relay *Relay
}

// Write writes once the relay forwards.
func (g gated) Write(data []byte) (int, error) {
	g.relay.mu.Lock()
	open := g.relay.open
	g.relay.mu.Unlock()
	<-open
	return g.Writer.Write(data) //nolint:wrapcheck // io.Copy hands it on
}
