package firewall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
	"github.com/weft-sdn/weft/policy"
)

// keeper makes sure that switches have their wanted entries.
type keeper interface {
	Settle(ctx context.Context) error
	Status(sw flow.DPID) (state string, err error)
}

// store holds all rules, and the known state of the switches.
type store struct {
	cfg     *Config
	net     network
	network func() nib.Snapshot
	kept    *policy.Policy[proto.Message, *record]
	keeper  keeper
	log     *slog.Logger
	now     atomic.Pointer[ruleset]
	reached object.Limits // of the configuration
	line    chan *site    // those with verdicts to be installed
	damage  func() string // what is wrong with the store
	unread  error         // why a record of an earlier run cannot be read
	sites   sites
	changes chan struct{} // notified when verdicts may no longer hold
	news    chan struct{} // notified when virtual networks of tenants have changed

	mu object.Guard // guards the following, and kept
	book
}

func newStore(cfg *Config, net network, log *slog.Logger) *store {
	b := &store{
		cfg: cfg, net: net, log: log, line: make(chan *site, 4096), changes: make(chan struct{}, 1), news: make(chan struct{}, 1),
		book: newBook(), sites: sites{m: map[flow.DPID]*site{}},
		damage: func() string { return "" }, network: func() nib.Snapshot { return nib.Snapshot{} },
	}
	b.now.Store(&ruleset{version: 1, all: b.all.now, own: map[flow.DPID]*classifier{}, fallback: actionAllow})
	b.mu.Applied = b.publish
	b.kept = policy.New(b.kind())
	return b
}

// kind describes the records. Several may change together, so publish, not On, names the
// switches to compile.
func (b *store) kind() policy.Kind[proto.Message, *record] {
	return policy.Kind[proto.Message, *record]{
		Owner: flow.OwnerFirewall, What: "firewall", Many: "rules", Bucket: "rules", Guard: &b.mu,
		Name: keyOf, Said: func(p *record) proto.Message { return p.said },
		Format: object.Format[*record]{Format: (*record).format, Parse: b.readRecord}, Bad: b.bad, Changed: b.apply,
		All: b.want, On: func(*record) []flow.DPID { return nil },
		Reads: nib.Roles | nib.Segments, Network: b.networkChanged,
		Count: func() int { return b.now.Load().rules },
	}
}

// bad follows a record of the store that cannot be read. Those of an earlier run are an
// error: a firewall does not start with some of its rules.
func (b *store) bad(key string, err error) {
	b.log.Warn("rules of the store not read", "key", key, "error", err)
	if messageOf(key) != nil && b.unread == nil {
		b.unread = fmt.Errorf("firewall's %s: %w", key, err)
	}
}

// publish puts what has changed into force. It is called with mu held.
func (b *store) publish() {
	old := b.now.Load()
	set, x := b.book.publish(old)
	if x.empty() && old.rules == set.rules {
		return
	}
	b.now.Store(set)
	for _, s := range b.sites.all() {
		s.outdate(x)
	}
	b.kept.Recompute(x.switches()...)
	object.Notify(b.changes)
}

// change makes the edits of a plan, which is called with mu held, and returns what has
// changed; a dry run makes none. If the edits cannot be stored, the error says so in
// the given words.
func (b *store) change(ctx context.Context, dry bool, words string, plan func() ([]object.Edit, error)) (*change, error) {
	x, damage := &change{}, b.damage()
	var refused error
	err := b.mu.Change(ctx, func() (edits []object.Edit, err error) {
		edits, refused = plan()
		switch {
		case refused != nil:
			return nil, refused
		case len(edits) == 0:
			return nil, nil
		case dry && damage != "":
			return nil, errors.New("it is read-only: " + damage + "; run weft store repair")
		case dry:
			return nil, nil
		}
		return append(edits, object.Then(func() { x = b.changed })), nil
	})
	if err != nil && refused == nil {
		err = api.Errorf(codes.Unavailable, words, err)
	}
	return x, err
}

// enforce makes the switches do what the rules say after a change; if nothing has
// changed, those of earlier changes. It returns the switches that do not yet; they are
// tried again.
func (b *store) enforce(ctx context.Context, x *change, wait bool) []*api.FirewallFailure {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.Deadline)
	defer cancel()
	sites := b.sites.all()
	if switches := x.switches(); len(switches) > 0 {
		sites = sites[:0]
		for _, sw := range switches {
			sites = append(sites, b.sites.of(sw))
		}
	}
	revoke := func(s *site) error { return s.revoke(ctx, b.net) }
	each(sites, revoke) // it is tried again below
	if !wait {
		return nil
	}
	_ = b.keeper.Settle(ctx) // Status reports failures
	if b.review() {
		_ = b.keeper.Settle(ctx)
		b.review()
	}
	failed := each(sites, revoke) // where they are no longer used, too
	return append(failed, each(sites, b.standing)...)
}

// standing returns why a switch does not follow the rules.
func (b *store) standing(s *site) error {
	switch state, err := b.keeper.Status(s.dpid); state {
	case "failing":
		return err
	case "syncing":
		return fmt.Errorf("not confirmed within %v", b.cfg.Deadline)
	}
	return nil
}

// serve installs verdicts until ctx ends.
func (b *store) serve(ctx context.Context) {
	var spare []words
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-b.line:
			list := s.take(spare)
			if err := s.install(ctx, b, list, time.Now()); err != nil && ctx.Err() == nil {
				b.log.Warn("verdicts not sent", "dpid", s.dpid, "error", err)
			}
			spare = list
		}
	}
}
