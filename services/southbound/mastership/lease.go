package mastership

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Tenure is what the store says of who is master of a partition's switches: the
// only value that decides it. It is replaced by compare-and-swap only, so of
// several who want the mastership one gets it.
type Tenure struct {
	// Holder is the process, for people.
	Holder string `json:"holder"`
	// Run tells runs of processes apart.
	Run string `json:"run"`
	// Epoch is the generation id of the holder's role requests (OpenFlow 1.3.5
	// §6.3.6); it never falls.
	Epoch uint64 `json:"epoch"`
	// Lasts is for how long nobody may take the mastership after the last
	// renewal, in milliseconds; 0 of a holder that has no standby and does not
	// renew.
	Lasts int64 `json:"lasts_ms"`
	// Others are the instances that the holder asks to leave it the mastership
	// while the store is away; who is not among them waits for longer.
	Others []string `json:"others,omitempty"`
	// Released says that the holder has given it back.
	Released bool `json:"released,omitempty"`
}

// ReadTenure reads what the store has.
func ReadTenure(value []byte) (t Tenure, err error) {
	if err = json.Unmarshal(value, &t); err != nil {
		err = fmt.Errorf("the lease of the mastership cannot be read: %w", err)
	}
	return t, err
}

func (t *Tenure) lasts() time.Duration { return time.Duration(t.Lasts) * time.Millisecond }

// Terms are the times of a lease.
type Terms struct {
	Lasts time.Duration // after a renewal
	Renew time.Duration // between renewals; 0: there is no standby, and nothing is renewed
	Place int           // 0 is first where the mastership is free at the start

	others []string // instances that may take it
}

// lease decides who is master: it holds what this process knows of the store,
// and says what to do next. It does no input or output and has no clock; all
// times are of one clock that does not jump.
//
// It is renewed by the store, or while that is away by all who could take it
// instead, who promise to leave it to the holder (docs/decisions, 10).
//
// Why two never hold it: the holder counts its time from before it sent the
// renewal, whoever waits from after it has seen it; the former lets it end a
// margin earlier; and a renewal or a take-over is a compare-and-swap on the
// revision that was seen.
type lease struct {
	Terms
	self Tenure // Holder and Run of this process

	Known bool // what follows has been read
	free  bool // it was free when it was first read, and is so still
	have  Tenure
	rev   uint64    // revision; 0 if nobody has ever had it
	seen  time.Time // when that revision was seen first

	epoch uint64    // held under; 0: not held
	until time.Time // end of the time held
	due   time.Time // of the next renewal
	doubt bool      // a write of ours may have been done: the store is to be read first
	floor uint64    // the least epoch wanted
	lost  bool      // somebody else has it: it is never held again

	wished  []string  // others of writes since the last one that was confirmed
	writing bool      // a write that takes the mastership is on its way
	left    time.Time // until then it is left to who holds it, as was promised
}

// act is what the lease wants done.
type act int

const (
	actWait  act = iota // nothing: it is asked again after the time given
	actRead             // read the store after that time, and tell (found)
	actWrite            // write what wish says
)

// unrenewed is for how long a tenure without renewals must not have changed
// before who waits takes it: its holder has begun without a standby and is to
// learn of one, or it has died then.
const unrenewed = 5 * time.Second

// margin is how much earlier than others take its lease the holder lets go of it.
func margin(lasts time.Duration) time.Duration { return lasts / 8 }

// held reports whether this process may program switches.
func (l *lease) held(now time.Time) bool { return l.epoch != 0 && !l.lost && now.Before(l.until) }

// deadline is when the time held ends; forever if the lease is not renewed.
func (l *lease) deadline() (until time.Time, forever bool) { return l.until, l.Renew == 0 }

// found takes what the store has; rev 0 is nothing.
func (l *lease) found(now time.Time, t Tenure, rev uint64) {
	l.doubt = false
	if !l.Known || rev != l.rev {
		l.seen = now
		l.free = !l.Known && (rev == 0 || t.Released)
	}
	l.Known, l.have, l.rev = true, t, rev
	if l.epoch != 0 && (rev == 0 || t.Run != l.self.Run || t.Released) {
		l.lost = true
	}
}

// next says what to do, and after which time; who waits for the mastership reads
// the store every poll.
func (l *lease) next(now time.Time, poll time.Duration) (do act, wait time.Duration) {
	switch {
	case l.lost:
		return actWait, poll
	case !l.Known || l.doubt:
		return actRead, 0
	case l.epoch != 0 && l.epoch < l.floor:
		return actWrite, 0
	case l.epoch != 0 && l.Renew == 0 && l.have.Lasts == 0:
		return actWait, time.Hour
	case l.epoch != 0 && now.Before(l.due):
		return actWait, l.due.Sub(now)
	case l.epoch != 0:
		return actWrite, 0
	}
	if left := l.takeable().Sub(now); left > 0 {
		return actRead, min(left, poll) // whoever has it may have renewed it meanwhile
	}
	return actWrite, 0
}

// strange is for how much longer a process waits that the holder does not ask
// to leave it the mastership: it has come by a plan that the holder may not know.
const strange = 30 * time.Second

// takeable is when this process may take what it does not hold.
func (l *lease) takeable() time.Time {
	if at := l.takeableByStore(); l.left.Before(at) {
		return at
	}
	return l.left
}

// takeableByStore is takeable as far as what the store has goes.
func (l *lease) takeableByStore() time.Time {
	switch {
	case l.have.Run == l.self.Run && l.rev != 0 && !l.have.Released: // an earlier write of ours has been done after all
		return l.seen
	case l.rev == 0 || l.have.Released:
		if l.free { // at the start of everything the first is to be first
			return l.seen.Add(time.Duration(l.Place) * l.Lasts)
		}
		return l.seen
	case l.have.Lasts == 0 && l.Renew == 0 && l.Place == 0: // nobody but this process may have it
		return l.seen
	case l.have.Lasts == 0:
		return l.seen.Add(unrenewed)
	case len(l.have.Others) > 0 && l.have.Holder != l.self.Holder && !slices.Contains(l.have.Others, l.self.Holder):
		return l.seen.Add(l.have.lasts() + strange)
	}
	return l.seen.Add(l.have.lasts())
}

// wish is what is to be written, over which revision. fresh is the least epoch
// of one that begins.
func (l *lease) wish(fresh uint64) (t Tenure, over uint64) {
	t = l.self
	if l.Renew > 0 {
		t.Lasts = int64(l.Lasts / time.Millisecond)
		t.Others = l.others
	}
	l.wished = append(l.wished, t.Others...)
	t.Epoch = max(l.epoch, l.floor)
	if l.epoch == 0 {
		t.Epoch = max(t.Epoch, fresh, l.have.Epoch+1)
	}
	return t, l.rev
}

// granted takes that a write was done that was sent at a time.
func (l *lease) granted(sent, now time.Time, t Tenure, rev uint64) {
	if l.lost {
		return
	}
	l.have, l.rev, l.seen = t, rev, now
	l.wished = nil
	l.epoch = t.Epoch
	l.until = sent.Add(l.Lasts - margin(l.Lasts))
	l.due = sent.Add(l.Renew)
}

// pledge promises to leave the mastership to who holds it by a tenure, for as
// long as a renewal of that lasts. It returns false if this process has it, is
// taking it, or knows of a later holder.
func (l *lease) pledge(now time.Time, t Tenure) bool {
	later := l.Known && l.rev != 0 && (l.have.Epoch > t.Epoch || l.have.Epoch == t.Epoch && l.have.Run != t.Run)
	if l.writing || later || l.epoch != 0 && !l.lost {
		return false
	}
	if until := now.Add(min(t.lasts(), LeaseMost)); until.After(l.left) {
		l.left = until
	}
	return true
}

// asks are those whose promises prolong the lease, all together.
func (l *lease) asks() []string {
	list := slices.Concat(l.have.Others, l.wished)
	slices.Sort(list)
	return slices.Compact(list)
}

// askAt is when they are to be asked; never is true if nobody is.
func (l *lease) askAt(now time.Time) (at time.Time, never bool) {
	if !l.held(now) || l.Renew == 0 || l.have.Lasts == 0 || len(l.asks()) == 0 {
		return at, true
	}
	whole := l.Lasts - margin(l.Lasts)
	return l.until.Add(l.Renew*3/2 - whole), false
}

// pledged takes that all of them have promised to leave the mastership here, to
// a question that was sent at a time. A lease that has ended is renewed by the
// store only.
func (l *lease) pledged(asked, now time.Time) {
	lasts := min(l.Lasts, l.have.lasts())
	if until := asked.Add(lasts - margin(lasts)); l.held(now) && until.After(l.until) {
		l.until = until
	}
}

// refused takes that somebody else was first, or that nobody knows whether a
// write was done: the store is read next.
func (l *lease) refused() { l.doubt = true }

// LeaseMost bounds the time of a lease.
const LeaseMost = time.Minute
