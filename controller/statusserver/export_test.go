package statusserver

import (
	"context"
	"net/http"
	"time"
)

// Handler is what the server answers with, without a network.
func (s *Server) Handler() http.Handler { return s.handler }

// WriteDue writes what is due by the server's clock, and returns when it is written.
func (s *Server) WriteDue(ctx context.Context) {
	for {
		slots := newSlots()
		s.writer.writeDue(ctx, slots)
		slots.group.Wait()
		if s.writer.held.dueAt(s.writer.clock.Now()) == 0 {
			return
		}
	}
}

// Settle waits until no proof is being renewed.
func (s *Server) Settle() {
	if h, ok := s.handler.(*handler); ok {
		h.identities.running.Wait()
	}
}

// ForgetIdle forgets jobs that report no more, and returns how many are left.
func (s *Server) ForgetIdle() int {
	s.writer.held.forgetIdle()
	jobs, _ := s.writer.held.count()
	return jobs
}

// dueAt is how many jobs are due at an instant.
func (h *held) dueAt(now time.Time) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	due := 0
	for _, entry := range h.queue {
		if !entry.due.After(now) {
			due++
		}
	}
	return due
}
