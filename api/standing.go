package api

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
)

// UnconfirmedError is the error for entries that a switch has not confirmed.
type UnconfirmedError struct {
	Failed, Of int
	Reason     string // of the first
	Refused    bool   // the switch itself has refused them all: it is not late or away
}

// Error says how many entries there are, and why the first is not confirmed.
func (e *UnconfirmedError) Error() string {
	return fmt.Sprintf("%d of %d entries: %s", e.Failed, e.Of, e.Reason)
}

// Confirmed returns why not all of a number of entries are in force, as the answer
// of SetStanding says; nil if they are.
func (m *SetStandingResponse) Confirmed(entries int) error {
	if len(m.GetFailed()) == 0 {
		return nil
	}
	e := &UnconfirmedError{Failed: len(m.Failed), Of: entries, Reason: m.Failed[0].GetReason(), Refused: true}
	for _, f := range m.Failed {
		e.Refused = e.Refused && f.GetRefused()
	}
	return e
}

// RefusedBySwitch reports whether an error is the refusal of a switch: the same
// entries will be refused again.
func RefusedBySwitch(err error) bool {
	e := (*UnconfirmedError)(nil)
	return errors.As(err, &e) && e.Refused
}

// Retry paces the attempts to bring entries to one switch. Its zero value begins.
type Retry struct {
	pauses backoff.Exponential
	said   string
}

// retryRefused is the longest pause after a refusal.
const retryRefused = 5 * time.Minute

// After returns how long to wait after a failed attempt, twice as long each time
// from first to last, or much longer if the switch refuses, and whether the log does
// not say so yet.
func (r *Retry) After(err error, first, last time.Duration) (pause time.Duration, news bool) {
	if RefusedBySwitch(err) {
		last = max(last, retryRefused)
	}
	r.pauses.First, r.pauses.Last = first, last
	text := err.Error()
	news, r.said = text != r.said, text
	return r.pauses.Next(), news
}

// Soon makes the next pause the first again: something has changed.
func (r *Retry) Soon() { r.pauses.Reset() }
