package firewall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/nib"
	"github.com/weft-sdn/weft/object"
)

// keeper makes sure that switches have their wanted entries.
type keeper interface {
	Recompute(switches ...flow.DPID)
	Settle(ctx context.Context) error
	Status(sw flow.DPID) (state string, err error)
}

// store holds all rules, and the known state of the switches.
type store struct {
	cfg     *Config
	net     network
	network func() nib.Snapshot
	bucket  object.Bucket
	changes *object.Log        // of bucket
	records map[string]*record // in the bucket
	keeper  keeper
	log     *slog.Logger
	now     atomic.Pointer[ruleset]
	reached object.Limits // of the configuration
	line    chan *site    // those with verdicts to be installed
	damage  func() string // what is wrong with the store
	sites   sites

	// Changes of the rules take turns, and lock mu while they write: the holder
	// of the turn may read what follows without the lock, others lock. Nobody
	// holds the lock while something is stored or a switch is awaited.
	mu object.Guard
	book

	newsMu      sync.Mutex        // guards segmentNews
	segmentNews map[uint16]string // changed segments; empty: it has gone
	news        chan struct{}     // notified then

}

func newStore(cfg *Config, net network, kept object.Bucket, log *slog.Logger) *store {
	b := &store{
		cfg: cfg, net: net, bucket: kept, changes: object.NewLog(kept), records: map[string]*record{}, log: log, line: make(chan *site, 4096),
		book: newBook(), sites: sites{m: map[flow.DPID]*site{}}, segmentNews: map[uint16]string{}, news: make(chan struct{}, 1),
		damage: func() string { return "" }, network: func() nib.Snapshot { return nib.Snapshot{} },
	}
	b.now.Store(&ruleset{all: b.all.now, own: map[flow.DPID]*classifier{}, fallback: actionAllow})
	return b
}

// publish puts what has changed into force, and returns it. The caller has the turn.
func (b *store) publish() *change {
	set, x := b.book.publish(b.now.Load())
	b.now.Store(set)
	for _, s := range b.sites.all() {
		s.outdate(x)
	}
	return x
}

// change stores what a plan returns, and returns what has changed; a dry run stores
// nothing. If it cannot be stored, the error says so in the given words. The plan has
// the turn.
func (b *store) change(ctx context.Context, dry bool, words string, plan func() (map[string]*record, error)) (*change, error) {
	done, err := b.mu.Turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	next, err := plan()
	switch damage := b.damage(); {
	case err != nil:
		return nil, err
	case len(next) == 0 || dry && damage == "":
		return &change{}, nil
	case dry:
		err = errors.New("it is read-only: " + damage + "; run weft store repair")
	default:
		err = b.save(ctx, next)
	}
	if err != nil {
		return nil, api.Errorf(codes.Unavailable, words, err)
	}
	return b.publish(), nil
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
