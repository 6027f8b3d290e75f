package statusserver

import (
	"context"
	"net/http"
	"time"
)

// Handler returns the server's handler, without a network.
func (s *Server) Handler() http.Handler { return s.handler }

// WriteDue writes the reports that are due by the server's clock, and returns when they are written.
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

// ForgetIdle forgets jobs that no longer report, and returns the number of jobs left.
func (s *Server) ForgetIdle() int {
	s.writer.held.forgetIdle()
	jobs, _ := s.writer.held.count()
	return jobs
}

// dueAt returns the number of jobs that are due at an instant.
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
