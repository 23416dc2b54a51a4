package discovery

import (
	"context"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// allowLink brings a held link up whatever its probes show.
func (t *topology) allowLink(now int64, p pair) {
	t.allowed[p] = true
	for _, at := range [...]flow.Location{p.a, p.b} {
		if p := t.at(at); p != nil {
			t.endTrials(now, p, "allowed")
			p.blocked = 0
			t.settleRole(now, p)
			if p.up && p.out == nil {
				p.burst(now)
				p.dp.next = now
			}
		}
	}
}

// disallow revokes that. It puts a link that is up on trial.
func (t *topology) disallow(now int64, p pair) {
	delete(t.allowed, p)
	if slices.Contains(t.cfg.allows(), p) {
		t.allowed[p] = true
		return
	}
	f := t.pairs[p]
	if f == nil || t.cfg.Latency.Max == 0 {
		return
	}
	for _, l := range f.links {
		if l == nil || l.trial != nil || t.isFast(now, l.best, l.src, l.dst) {
			continue
		}
		t.startProbation(now, l)
	}
}

// allowances stores the links that the operator has allowed.
type allowances struct {
	store store
	e     *engine

	mu sync.Mutex // one call at a time
}

// allowancesMax bounds their number.
const allowancesMax = 10_000

// load restores the links that earlier runs stored.
func (a *allowances) load(ctx context.Context) error {
	return a.store.All(ctx, func(key string, _ []byte, _ uint64) error {
		p, err := parsePair(strings.NewReplacer(".", ":", "-", " ").Replace(key))
		if err != nil {
			a.e.log.Warn("allowed link not read", "key", key, "error", err)
			return nil
		}
		a.e.change(func(now int64, t *topology) { t.allowLink(now, p) })
		return nil
	})
}

// set answers AllowLink.
func (a *allowances) set(ctx context.Context, req *api.AllowLinkRequest) (*api.AllowLinkResponse, error) {
	p, err := parseEnds(req.GetA(), req.GetB())
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if req.GetRevoke() {
		if err := a.store.Delete(ctx, p.key()); err != nil {
			return nil, err
		}
		a.e.change(func(now int64, t *topology) { t.disallow(now, p) })
		return &api.AllowLinkResponse{}, nil
	}
	count, known := 0, false
	a.e.read(func(t *topology) { count, known = len(t.allowed), t.allowed[p] })
	if count >= allowancesMax && !known {
		return nil, api.Errorf(codes.ResourceExhausted, "%d links are allowed already: revoke some, or raise discovery.latency.max", count)
	}
	if _, revision, err := a.store.Get(ctx, p.key()); err != nil {
		return nil, err
	} else if revision == 0 {
		if _, err := a.store.Update(ctx, p.key(), []byte("allowed"), 0); err != nil {
			return nil, err
		}
	}
	a.e.change(func(now int64, t *topology) { t.allowLink(now, p) })
	return &api.AllowLinkResponse{}, nil
}
