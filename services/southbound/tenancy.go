package southbound

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/weft-sdn/weft/services/southbound/mastership"
)

// newTenure returns the tenure that this process writes into the lease.
func (c *Config) newTenure() mastership.Tenure {
	var run [8]byte
	_, _ = rand.Read(run[:]) // never fails
	return mastership.Tenure{Holder: c.holder(), Run: fmt.Sprintf("%x", run)}
}

// holder is the name by which others know this process.
func (c *Config) holder() string {
	if c.Instance != "" {
		return c.Instance
	}
	host, _ := os.Hostname()
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

// run makes this process master of the switches once it has won the lease and
// ready, which publishes the mastership, has returned. It ends with ctx, after
// it has given the mastership back, or when it loses the mastership. If the
// plan has a standby, it holds sessions with the switches from the beginning.
func (h *hub) run(ctx context.Context, m *mastership.Mastership, listeners []listener, ready func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	serving := h.cfg.Load().Standbys > 0
	if serving {
		g.Go(func() error { return h.serve(ctx, listeners) })
		g.Go(func() error { m.Test(ctx); return nil })
	}
	g.Go(func() error {
		epoch, err := m.Win(ctx)
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		defer m.Release(context.WithoutCancel(ctx))
		h.epoch.Store(epoch)
		keeping, stop := context.WithCancel(ctx)
		kept := make(chan error, 1)
		g.Go(func() error { m.Vouch(keeping); return nil })
		go func() { kept <- m.Keep(keeping, epoch, h.promote, h.announceMissed) }()
		defer func() { stop(); m.Fence.Shut() }()
		if err := ready(ctx); err != nil {
			return ignoreEnd(ctx, err)
		}
		m.Log.Info("master of the switches", "epoch", epoch, "held_ready", h.countStandby())
		select {
		case err = <-kept: // already lost
		default:
			h.promote(h.epoch.Load())
			if !serving {
				g.Go(func() error { return h.serve(ctx, listeners) })
			}
			err = <-kept
		}
		if ctx.Err() == nil {
			h.silent.Store(true) // the switches do not cause the ends of these sessions
		}
		return ignoreEnd(ctx, err)
	})
	return g.Wait()
}

const (
	// contestNear is how far above ours a generation may be that a process of the
	// former plan gave a switch: it has gone by our epochs, and one further.
	contestNear = 16
	// contestMost is how often such generations are outbid before the switch is
	// left to whoever goes on raising them; contestAgain gives one more.
	contestMost  = 5
	contestAgain = time.Hour
)

// higherGenerationHandler returns the reaction to a switch that reports a generation higher
// than ours. With partitions it may have come from another one, and the store
// is asked for a higher epoch; so it is where the generation is hardly higher,
// as that of a process that does not know yet that its partition is no more.
// Otherwise another process, or another controller, is master.
func (h *hub) higherGenerationHandler(m *mastership.Mastership) func(generation uint64) bool {
	var mu sync.Mutex // guards raised
	var raised uint64
	contests := rate.NewLimiter(rate.Every(contestAgain), contestMost)
	return func(generation uint64) bool {
		mu.Lock()
		defer mu.Unlock()
		if h.mine.Load().Alone() && generation >= raised && (generation-h.epoch.Load() > contestNear || !contests.Allow()) {
			m.Look()
			return false
		}
		raised = max(raised, generation+1)
		m.Raise(generation + 1)
		return true
	}
}

// ignoreEnd returns err, or nil if the end of ctx caused it.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
