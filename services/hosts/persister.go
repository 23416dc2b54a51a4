package hosts

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// A bucket is durable key-value storage; Update changes a value only if its
// revision is still the given one.
type bucket interface {
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	All(ctx context.Context, f func(key string, value []byte, revision uint64) error) error
}

// runKey is the key of the number of the last run.
const runKey = "run"

// errSuperseded is the error for an instance that goes on after its successor
// has started.
var errSuperseded = errors.New("another instance has taken over")

// A persister stores the pages. Late writes of a dying instance cannot replace
// those of its successor: a page is written only over its known revision.
type persister struct {
	bucket bucket
	run    string // this one's number

	mu        sync.Mutex // guards revisions
	revisions map[string]uint64
}

// load puts the hosts of the last run into the table. It reports and leaves out
// what cannot be read.
func (s *persister) load(ctx context.Context, now int64, t *table, bad func(key string, err error)) error {
	s.revisions = map[string]uint64{}
	if err := s.begin(ctx); err != nil {
		return fmt.Errorf("hosts: number this run: %w", err)
	}
	err := s.bucket.All(ctx, func(key string, value []byte, revision uint64) error {
		if key == runKey {
			return nil
		}
		s.revisions[key] = revision
		number, err := strconv.Atoi(strings.TrimPrefix(key, "page/"))
		if err != nil || number < 0 || number > 999_999 {
			bad(key, fmt.Errorf("key %q: want page/NUMBER", key))
			return nil
		}
		for line := range strings.Lines(string(value)) {
			e, err := parseEntry(line)
			if err != nil {
				bad(key, err)
				continue
			}
			t.restore(now, number, e)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("hosts: read the hosts of an earlier run: %w", err)
	}
	return nil
}

// pagesAtOnce bounds the pages written in a row: each costs the disk about a
// millisecond.
const pagesAtOnce = 100

// save writes changed pages.
func (s *persister) save(ctx context.Context, t *table) error {
	values := map[*page][]byte{}
	t.mu.Lock()
	for p := range t.pages.dirty {
		if len(values) == pagesAtOnce {
			break
		}
		delete(t.pages.dirty, p)
		var text []byte
		for h := range p.hosts {
			text = appendEntry(text, h)
		}
		values[p] = text
	}
	t.mu.Unlock()
	for p, text := range values {
		if err := s.put(ctx, p.key(), text); err != nil {
			t.mu.Lock()
			for p := range values {
				t.pages.dirty[p] = struct{}{} // including those that were written: harmless
			}
			t.mu.Unlock()
			return fmt.Errorf("hosts: keep page %d: %w", p.number, err)
		}
	}
	return nil
}

// put writes a value over the known revision. If there is another revision, a
// dying instance has written it, or this is the dying one.
func (s *persister) put(ctx context.Context, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	revision, err := s.bucket.Update(ctx, key, value, s.revisions[key])
	if err != nil {
		if err := s.checkOwnership(ctx); err != nil {
			return err
		}
		if _, revision, err = s.bucket.Get(ctx, key); err != nil {
			return err
		}
		if revision, err = s.bucket.Update(ctx, key, value, revision); err != nil {
			return err
		}
	}
	s.revisions[key] = revision
	return nil
}

// checkOwnership returns errSuperseded if another instance has started meanwhile.
func (s *persister) checkOwnership(ctx context.Context) error {
	run, _, err := s.bucket.Get(ctx, runKey)
	if err != nil {
		return err
	}
	if string(run) != s.run {
		return errSuperseded
	}
	return nil
}

// begin numbers this run, so that earlier ones find that they are over.
func (s *persister) begin(ctx context.Context) error {
	last, revision, err := s.bucket.Get(ctx, runKey)
	if err != nil {
		return err
	}
	n, _ := strconv.ParseUint(string(last), 10, 64) // 0 before the first
	s.run = strconv.FormatUint(n+1, 10)
	_, err = s.bucket.Update(ctx, runKey, []byte(s.run), revision)
	return err
}

// restore adds a host of an earlier run. The host is published again once its
// port is known to be present, and has part of Age to be heard again: the
// controller does not hear hosts that only use routes.
func (t *table) restore(now int64, number int, e entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.index.host(e.id) != nil || t.index.size() >= t.cfg.Limit || t.owned.macs[e.id.mac()] {
		return
	}
	p := t.places.place(e.at)
	if !t.bindings.allow(e.id, e.at) || t.bindings.room(now, p, e.id) != accepted {
		t.places.scheduleRemoval(p)
		return
	}
	h := &host{id: e.id, first: e.first, moves: e.moves, repeat: true}
	h.held.Store(t.holds.bits(h.id, e.at))
	h.at.Store(p)
	h.seen.Store(min(e.seen, now))
	h.spared = now - int64(float64(t.cfg.Age)*0.8*float64(e.id.hash()>>11)/(1<<53)) // spreads the questions
	p.hosts[h] = struct{}{}
	t.index.put(h)
	t.unsaid++
	for _, a := range e.addresses {
		if owner, ok := t.bindings.owners.of(a.ip, e.id.vlan()); ok && owner != e.id {
			continue
		}
		if len(h.addresses) < t.cfg.AddressLimit && !t.owned.ips[a.ip] && t.index.holder(a.ip, e.id.vlan()) == nil {
			a.confirmed = min(a.confirmed, now)
			h.addresses = append(h.addresses, a)
			t.index.bind(a.ip, h)
		}
	}
	h.published = h.state()
	t.permits.update(now, h)
	t.pages.enter(t.pages.page(number), h)
	if a := p.sw; !a.gone && !a.awaited {
		a.awaited, a.since = true, now
		t.places.awaitSwitch(now+int64(t.cfg.SwitchGrace), e.at.Switch, a)
	}
	if p.isLost(t.cfg, now) {
		t.places.awaitPort(now, p)
	}
	t.ageing.moveUp(h.spared + int64(t.cfg.Age)*8/10)
}
