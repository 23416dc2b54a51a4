package mastership

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/weft-sdn/weft/internal/backoff"
)

// While the store is away, nobody can renew the lease there. The master then
// asks all instances that could take its place to leave it the mastership for
// the time of a renewal. If all of them promise, its lease lasts as if the store
// had renewed it.

// asker asks another instance, and returns its answer.
type asker func(ctx context.Context, instance string, question []byte) ([]byte, error)

var (
	promised = []byte("promised")
	denied   = []byte("denied")
)

const (
	// faithAfter is how long the master may take to renew its lease after the
	// store is known to accept writes, on a store that answers at once; on a slow
	// one faithSlow of its round trips longer, as the master may have to find
	// another server.
	faithAfter = 1500 * time.Millisecond
	faithSlow  = 8
	// faithEnds is the time without a question after which the master counts as
	// having reached the store; if the lease lasts longer, so does this: the
	// holder asks once in that time, or has lost it.
	faithEnds = 2 * time.Second
	// proofEvery is the interval between tries of the store; proofWait bounds
	// one on a store that is not slow.
	proofEvery = 250 * time.Millisecond
	proofWait  = 500 * time.Millisecond
)

// question is what the master asks.
type question struct {
	Tenure
	// Renewed is the revision of the last renewal in the store. It changes each
	// time if the master is only late now and again.
	Renewed uint64 `json:"renewed,omitempty"`
}

// faith is what a standby knows of a store that the master does not reach. As
// long as the store fails here too, the standby leaves the mastership to the
// master. If the store accepts writes here, only the master is cut off.
type faith struct {
	mu      sync.Mutex    // guards what follows
	began   time.Time     // when the first of the questions came
	asked   time.Time     // when the last of them came
	lasts   time.Duration // after the last of them, unless another comes
	renewed uint64        // the revision that they give
	proven  time.Time     // when the store accepted a write after began; zero: not yet
}

// recordQuestion records a question, and reports whether the master may stay; slow is
// what the store takes for a request. A master that has renewed its lease since
// its last question has reached the store: then its questions begin anew.
func (f *faith) recordQuestion(now time.Time, q question, slow time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked.IsZero() || now.Sub(f.asked) > f.lasts || q.Renewed != f.renewed {
		f.began, f.renewed, f.proven = now, q.Renewed, time.Time{}
	}
	f.asked, f.lasts = now, max(faithEnds, min(q.duration(), LeaseMost))
	return f.proven.IsZero() || now.Sub(f.proven) < min(faithAfter+faithSlow*slow, lastsMost)
}

// open reports whether to try the store, and since when questions come.
func (f *faith) open(now time.Time) (began time.Time, try bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.began, !f.asked.IsZero() && now.Sub(f.asked) <= f.lasts && f.proven.IsZero()
}

// recordProof records that the store accepted a write begun after the questions.
func (f *faith) recordProof(began, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.began.Equal(began) && f.proven.IsZero() {
		f.proven = now
	}
}

// Asked answers the question of another instance's master.
func (m *Mastership) Asked(encoded []byte) []byte {
	var q question
	if json.Unmarshal(encoded, &q) != nil {
		return denied
	}
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if !m.faith.recordQuestion(m.now(), q, m.Lease.slow) {
		return denied
	}
	if !m.Lease.pledge(m.now(), q.Tenure) {
		return denied
	}
	return promised
}

// Test tries the store while the master reports that it does not reach it.
func (m *Mastership) Test(ctx context.Context) {
	for backoff.Sleep(ctx, proofEvery) == nil {
		began, try := m.faith.open(m.now())
		if !try {
			continue
		}
		m.Mu.Lock()
		limit := max(proofWait, 2*m.Lease.slow)
		m.Mu.Unlock()
		trying, cancel := context.WithTimeout(ctx, limit)
		if m.ledger.Prove(trying) == nil {
			m.faith.recordProof(began, m.now())
		}
		cancel()
	}
}

// Vouch asks the others to leave the mastership here whenever the store renews
// it late, until ctx ends.
func (m *Mastership) Vouch(ctx context.Context) {
	var asking sync.WaitGroup
	defer asking.Wait()
	told := false
	for {
		m.Mu.Lock()
		now := m.now()
		at, never := m.Lease.askAt(now)
		q, names, renew, lasts := question{m.Lease.have, m.Lease.rev}, m.Lease.asks(), max(m.Lease.Renew, 10*time.Millisecond), m.Lease.term()
		quiet := m.Lease.seen
		m.Mu.Unlock()
		switch late := now.Sub(quiet) > lasts; {
		case never:
		case late && !told:
			told = true
			m.Log.Warn("the store does not renew the lease of the mastership: the standbys leave it here meanwhile, and switches are programmed")
		case !late && told:
			told = false
			m.Log.Info("the store renews the lease of the mastership again")
		}
		wait := renew
		if !never {
			wait = min(max(at.Sub(now), 0), renew)
		}
		if wait > 0 {
			if backoff.Sleep(ctx, wait) != nil {
				return
			}
			continue
		}
		asking.Go(func() { m.askAll(ctx, q, names, lasts-renewMargin(lasts)) })
		if backoff.Sleep(ctx, renew/2) != nil {
			return
		}
	}
}

// askAll asks all of the others once, and prolongs the lease if all promise
// within the limit; later promises are worthless.
func (m *Mastership) askAll(ctx context.Context, q question, names []string, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	encoded, err := json.Marshal(q)
	if err != nil {
		return
	}
	asked := m.now()
	answers := make(chan bool, len(names))
	for _, name := range names {
		go func() {
			answer, err := m.Ask(ctx, name, encoded)
			answers <- err == nil && bytes.Equal(answer, promised)
		}()
	}
	for range names {
		if !<-answers {
			return
		}
	}
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if m.Lease.recordPledge(asked, m.now(), q.Tenure); m.Lease.isHeld(m.now()) {
		m.Pledges.Add(1)
		m.Fence.set(m.Lease.heldUntil())
	}
}
