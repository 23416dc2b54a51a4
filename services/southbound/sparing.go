package southbound

import (
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// How many lines the log has of connections that are refused: as many at once, and
// then one in so long.
const (
	refusalsAtOnce = 20
	refusalEvery   = 10 * time.Second
)

// sparing logs what peers can cause as often as they like: a bounded number of lines,
// each with how many were left out before it.
type sparing struct {
	limit *rate.Limiter
	left  atomic.Int64
}

func (s *sparing) warn(log *slog.Logger, text string, attrs ...any) {
	if !s.limit.Allow() {
		s.left.Add(1)
		return
	}
	if n := s.left.Swap(0); n > 0 {
		attrs = append(attrs, "left_out", n)
	}
	log.Warn(text, attrs...)
}
