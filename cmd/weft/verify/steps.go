package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weft-sdn/weft/cmd/weft/planning"
	"github.com/weft-sdn/weft/plan"
)

// Step is one look at a controller whose plan follows its load, and what was done.
type Step struct {
	Time      string  `json:"time"`
	PacketIns float64 `json:"packet_ins"` // per second
	Changes   float64 `json:"changes"`    // of the topology, per second
	// CrossingUs is what a packet-in waits for messages between processes, as it was measured.
	CrossingUs float64     `json:"crossing_us"`
	Moves      []plan.Move `json:"moves"`
	// Gain is how much less the plan made anew costs by the model, in us of latency a second, of
	// Before.
	Gain     float64 `json:"gain"`
	Before   float64 `json:"before"`
	PaysBack float64 `json:"pays_back_seconds"` // -1: never
	Verdict  string  `json:"verdict"`
	Why      string  `json:"why"`
}

// The verdicts of steps.
const (
	keep    = "keep"     // the plan in force
	propose = "propose"  // what would be applied if it were not a dry run
	wait    = "wait"     // for a bound
	apply   = "apply"    // the plan made anew
	putBack = "put back" // the plan that was in force before the last step
)

// bounds are within what a plan follows by itself.
type bounds struct {
	dry    bool
	gain   float64 // share of the costs that moves must save at least
	moves  int     // in an hour, at most
	within []window
}

// window is a part of each day, from one time after midnight to another.
type window struct{ from, to time.Duration }

// has reports whether a time is in the window, which may go over midnight.
func (w window) has(at time.Time) bool {
	of := at.Sub(time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, at.Location()))
	if w.from <= w.to {
		return of >= w.from && of < w.to
	}
	return of >= w.from || of < w.to
}

// worse is by which share a packet-in may wait longer for messages after a step than before,
// before the step is put back.
const worse = 0.1

// seen is what was measured of a controller.
type seen struct {
	load     planning.Load
	crossing float64 // us for each packet-in
}

// follower has a plan follow the load.
type follower struct {
	bounds
	look func(context.Context) (seen, error)
	next func(context.Context, planning.Text, planning.Load) (planning.Text, *planning.Update, error)
	// put brings a plan into force, and returns when it is carried out.
	put func(context.Context, planning.Text) error
	now func() time.Time

	running planning.Text
	moved   []time.Time // when shards have moved, in the last hour
	before  *trial      // of the last step; nil: nothing was applied, or it was judged
	refused string      // a plan that was put back
}

// trial is what was in force before a step.
type trial struct {
	running planning.Text
	seen    seen
}

// lookError is the error of a look that has failed: nothing has been changed.
type lookError struct{ error }

func (e *lookError) Unwrap() error { return e.error }

// step looks once, and does what follows from that.
func (f *follower) step(ctx context.Context) (Step, error) {
	s := Step{Moves: []plan.Move{}, PaysBack: -1}
	is, err := f.look(ctx)
	if err != nil {
		return s, &lookError{err}
	}
	now := f.now()
	s.Time, s.PacketIns, s.Changes, s.CrossingUs = now.UTC().Format(time.RFC3339), is.load.PacketIns, is.load.Changes, is.crossing
	if was := f.before; was != nil {
		f.before = nil
		if is.crossing > (1+worse)*was.seen.crossing {
			s.Verdict, s.Why = putBack, fmt.Sprintf("a packet-in waits %.4g us for messages between processes, and waited %.4g us before the last step", is.crossing, was.seen.crossing)
			f.refused = string(f.running.Text)
			f.running = was.running
			return s, f.put(ctx, f.running)
		}
	}
	text, u, err := f.next(ctx, f.running, is.load)
	if err != nil {
		return s, err
	}
	if !u.Weighed {
		return s, errors.New(u.Why)
	}
	s.Moves, s.Gain, s.Before, s.PaysBack = append(s.Moves, u.Update.Moves...), u.Gain, u.Update.Before, u.PaysBack
	for len(f.moved) > 0 && now.Sub(f.moved[0]) >= time.Hour {
		f.moved = f.moved[1:]
	}
	s.Verdict, s.Why = f.decide(u, len(f.moved), string(text.Text) == f.refused, now)
	if s.Verdict != apply {
		return s, nil
	}
	f.before = &trial{f.running, is}
	f.running = text
	for range u.Update.Moves {
		f.moved = append(f.moved, now)
	}
	return s, f.put(ctx, text)
}

// decide says what to do about an update, with how many moves in the last hour.
func (b bounds) decide(u *planning.Update, lately int, refused bool, now time.Time) (verdict, why string) {
	n := len(u.Update.Moves)
	share := 0.0
	if u.Update.Before > 0 {
		share = u.Gain / u.Update.Before
	}
	says := fmt.Sprintf("%d moves save %.3g %% of the latency between servers", n, 100*share)
	if len(u.OldBreak) > 0 {
		says = fmt.Sprintf("under this load the plan in force breaks: %s; %d moves mend that", u.OldBreak[0], n)
	}
	switch {
	case n == 0 && len(u.OldBreak) > 0:
		return keep, fmt.Sprintf("under this load it breaks: %s; and nothing better was found", u.OldBreak[0])
	case n == 0:
		return keep, "nothing better was found for this load"
	case refused:
		return keep, says + ", but they were put back when they were tried"
	case len(u.OldBreak) == 0 && share < b.gain:
		return keep, fmt.Sprintf("%s: less than the %.3g %% that moves must save", says, 100*b.gain)
	case len(u.OldBreak) == 0 && u.PaysBack < 0:
		return keep, says + ", which never pays them back"
	}
	if len(u.OldBreak) == 0 {
		says += fmt.Sprintf(", and pay back in %.3g s", u.PaysBack)
	}
	switch {
	case b.dry:
		return propose, says
	case lately+n > b.moves:
		return wait, fmt.Sprintf("%s; there were %d in the last hour, and %d may be", says, lately, b.moves)
	case len(b.within) > 0 && !b.inWindow(now):
		return wait, says + "; it is outside of the windows for moves"
	}
	return apply, says
}

func (b bounds) inWindow(now time.Time) bool {
	for _, w := range b.within {
		if w.has(now) {
			return true
		}
	}
	return false
}
