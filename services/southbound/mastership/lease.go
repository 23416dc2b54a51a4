package mastership

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Tenure is the value in the store that alone decides who is master of a
// partition's switches. It is replaced only by compare-and-swap, so one of
// several competing processes gets the mastership.
type Tenure struct {
	// Holder is the process, for readers.
	Holder string `json:"holder"`
	// Run distinguishes runs of processes.
	Run string `json:"run"`
	// Epoch is the generation id of the holder's role requests (OpenFlow 1.3.5
	// §6.3.6); it never falls.
	Epoch uint64 `json:"epoch"`
	// Lasts is how long after the last renewal nobody may take the mastership,
	// in milliseconds; 0 if the holder has no standby and does not renew.
	Lasts int64 `json:"lasts_ms"`
	// Others are the instances that the holder asks to leave it the mastership
	// while the store is away; an instance that is not listed waits longer.
	Others []string `json:"others,omitempty"`
	// Released reports that the holder has given the mastership back.
	Released bool `json:"released,omitempty"`
}

// ReadTenure decodes a value of the store.
func ReadTenure(value []byte) (t Tenure, err error) {
	if err = json.Unmarshal(value, &t); err != nil {
		err = fmt.Errorf("the lease of the mastership cannot be read: %w", err)
	}
	return t, err
}

func (t *Tenure) duration() time.Duration { return time.Duration(t.Lasts) * time.Millisecond }

// Terms are the times of a lease.
type Terms struct {
	Lasts time.Duration // after a renewal
	Renew time.Duration // between renewals; 0: there is no standby, and no renewal
	Place int           // 0 goes first if the mastership is free at the start

	others []string // instances that may take it
}

// lease decides who is master: it holds what this process knows of the store,
// and says what to do next. It does no I/O and has no clock; all times are from
// one monotonic clock.
//
// The store renews it. While the store is away, all instances that could take
// it instead renew it by promising to leave it to the holder (docs/decisions,
// 10).
//
// Two processes never hold it, because the holder counts its time from before
// it sent the renewal, and a waiting process from after it saw the renewal; the
// holder gives up a margin earlier; and a renewal or a take-over is a
// compare-and-swap on the revision that was seen.
type lease struct {
	Terms
	self Tenure // Holder and Run of this process

	Known bool // what follows has been read
	free  bool // it was free when first read, and still is
	have  Tenure
	rev   uint64    // revision; 0 if nobody has ever held it
	seen  time.Time // when that revision was first seen

	epoch  uint64        // of the tenure held; 0: not held
	until  time.Time     // end of the tenure held
	due    time.Time     // of the next renewal
	doubt  bool          // a write of ours may have taken effect: read the store first
	floor  uint64        // the least epoch wanted
	lost   bool          // another process has it: this one never holds it again
	slow   time.Duration // what a request that the store answers takes at most, lately
	waited time.Duration // how long the last request was waited for in vain; 0: it was answered

	wished  []string  // others in writes since the last confirmed one
	writing bool      // a write that takes the mastership is under way
	left    time.Time // until then it is left to its holder, as promised
}

// act is the next action of a lease.
type act int

const (
	actWait  act = iota // nothing: ask again after the time given
	actRead             // read the store after that time, and call found
	actWrite            // write the result of wish
)

// unrenewed is how long a tenure without renewals must stay unchanged before a
// waiting process takes it: its holder started without a standby and needs time
// to learn of one, or it is dead.
const unrenewed = 5 * time.Second

// renewMargin returns how much earlier the holder gives up its lease than others may
// take it.
func renewMargin(lasts time.Duration) time.Duration { return lasts / 8 }

// lastsMost bounds a lease that is longer than its terms because the store is
// slow.
const lastsMost = 5 * time.Second

// recordLatency records how long the store took to answer a request. The maximum
// decays slowly, over some 60 renewals.
func (l *lease) recordLatency(d time.Duration) { l.slow, l.waited = max(d, l.slow-l.slow/64), 0 }

// recordTimeout records that a request timed out, so its result is unknown. It does
// not count as latency, because the store may be unreachable. Only the next request
// gets more time.
func (l *lease) recordTimeout(d time.Duration) {
	l.waited = d
	l.recordRefusal()
}

// patience returns how long to wait for the answer to a request.
func (l *lease) patience() time.Duration {
	return max(l.renewalTime()/2, min(2*l.waited, lastsMost/2), 20*time.Millisecond)
}

// renewalTime returns the duration of a renewal: that of the terms, but enough for
// one renewal to fail and another to succeed on a slow store.
func (l *lease) renewalTime() time.Duration {
	if l.Renew == 0 {
		return l.Lasts
	}
	return max(l.Lasts, min(l.Renew+6*l.slow, lastsMost))
}

// term returns how long the tenure in the store lasts.
func (l *lease) term() time.Duration {
	if l.have.Lasts == 0 {
		return l.Lasts
	}
	return min(l.have.duration(), LeaseMost)
}

// isHeld reports whether this process may program switches.
func (l *lease) isHeld(now time.Time) bool { return l.epoch != 0 && !l.lost && now.Before(l.until) }

// heldUntil returns when the lease ends; forever is true if it needs no renewal.
func (l *lease) heldUntil() (until time.Time, forever bool) { return l.until, l.Renew == 0 }

// recordRead records what the store has; rev 0 means nothing.
func (l *lease) recordRead(now time.Time, t Tenure, rev uint64) {
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

// next returns the next action and how long to wait before it. A process that
// waits for the mastership reads the store every poll.
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
	if left := l.takeableAt().Sub(now); left > 0 {
		return actRead, min(left, poll) // its holder may have renewed it meanwhile
	}
	return actWrite, 0
}

// strange is how much longer a process waits if the holder does not ask it for
// promises: its place is from a plan that the holder may not know.
const strange = 30 * time.Second

// takeableAt returns when this process may take a lease that it does not hold.
func (l *lease) takeableAt() time.Time {
	if at := l.takeableByStore(); l.left.Before(at) {
		return at
	}
	return l.left
}

// takeableByStore is takeable by the content of the store alone.
func (l *lease) takeableByStore() time.Time {
	switch {
	case l.have.Run == l.self.Run && l.rev != 0 && !l.have.Released: // our earlier write took effect
		return l.seen
	case l.rev == 0 || l.have.Released:
		if l.free { // at the very start the first goes first
			return l.seen.Add(time.Duration(l.Place) * l.Lasts)
		}
		return l.seen
	case l.have.Lasts == 0 && l.Renew == 0 && l.Place == 0: // only this process may have it
		return l.seen
	case l.have.Lasts == 0:
		return l.seen.Add(unrenewed)
	case len(l.have.Others) > 0 && l.have.Holder != l.self.Holder && !slices.Contains(l.have.Others, l.self.Holder):
		return l.seen.Add(l.have.duration() + strange)
	}
	return l.seen.Add(l.have.duration())
}

// wantedTenure returns the tenure to write, and the revision to replace. fresh is the
// lowest epoch of a new tenure.
func (l *lease) wantedTenure(fresh uint64) (t Tenure, over uint64) {
	t = l.self
	if l.Renew > 0 {
		t.Lasts = int64(l.renewalTime() / time.Millisecond)
		t.Others = l.others
	}
	l.wished = append(l.wished, t.Others...)
	t.Epoch = max(l.epoch, l.floor)
	if l.epoch == 0 {
		t.Epoch = max(t.Epoch, fresh, l.have.Epoch+1)
	}
	return t, l.rev
}

// sends records that a write is about to be sent, and reports whether it ends the
// time held earlier: others may act on it even if its result stays unknown.
func (l *lease) sends(now time.Time, t Tenure) bool {
	end := now.Add(t.duration() - renewMargin(t.duration()))
	if l.epoch == 0 || t.Lasts == 0 || l.have.Lasts == 0 || !end.Before(l.until) {
		return false
	}
	l.until = end
	return true
}

// recordWrite records that a write sent at the time sent took effect.
func (l *lease) recordWrite(sent, now time.Time, t Tenure, rev uint64) {
	if l.lost {
		return
	}
	l.have, l.rev, l.seen = t, rev, now
	l.wished = nil
	l.epoch = t.Epoch
	l.until = sent.Add(l.term() - renewMargin(l.term()))
	l.due = sent.Add(l.Renew)
}

// pledge promises to leave the mastership to the holder of a tenure for as long
// as a renewal lasts. It returns false if this process holds it, is taking it,
// or knows of a later holder.
func (l *lease) pledge(now time.Time, t Tenure) bool {
	later := l.Known && l.rev != 0 && (l.have.Epoch > t.Epoch || l.have.Epoch == t.Epoch && l.have.Run != t.Run)
	if l.writing || later || l.epoch != 0 && !l.lost {
		return false
	}
	if until := now.Add(min(t.duration(), LeaseMost)); until.After(l.left) {
		l.left = until
	}
	return true
}

// asks returns the instances whose promises together prolong the lease.
func (l *lease) asks() []string {
	list := slices.Concat(l.have.Others, l.wished)
	slices.Sort(list)
	return slices.Compact(list)
}

// askAt returns when to ask them; never is true if there is nobody to ask.
func (l *lease) askAt(now time.Time) (at time.Time, never bool) {
	if !l.isHeld(now) || l.Renew == 0 || l.have.Lasts == 0 || len(l.asks()) == 0 {
		return at, true
	}
	whole := l.term() - renewMargin(l.term())
	late := max(l.Renew*3/2, min(l.Renew+2*l.slow, whole/2))
	return l.until.Add(late - whole), false
}

// recordPledge records that all of them promised, in answer to a question about a
// tenure sent at the time asked, to leave the mastership here. Only the store
// renews a lease that has ended.
func (l *lease) recordPledge(asked, now time.Time, t Tenure) {
	lasts := min(t.duration(), LeaseMost)
	if until := asked.Add(lasts - renewMargin(lasts)); l.isHeld(now) && until.After(l.until) {
		l.until = until
	}
}

// recordRefusal records that another process was first, or that the result of a write
// is unknown: the store is read next.
func (l *lease) recordRefusal() { l.doubt = true }

// LeaseMost bounds the time of a lease.
const LeaseMost = time.Minute
