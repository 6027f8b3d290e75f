package statusserver

import "net/http"

// Handler is what the server answers with, without a network.
func (s *Server) Handler() http.Handler { return s.handler }
