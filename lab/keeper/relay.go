package keeper

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/weft-sdn/weft/internal/resend"
	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/nodes"
)

// relay accepts switches on a socket and joins each to a connection of its own
// to the controller. When either side ends, so does the other; while the
// controller cannot be reached a switch is turned away at once and tries
// again by its own back-off, as it would on TCP.
type relay struct {
	listener net.Listener
	dial     func(context.Context) (net.Conn, error) // the controller
	cancel   context.CancelFunc
	wg       sync.WaitGroup
}

func newRelay(ctx context.Context, l net.Listener, dial func(context.Context) (net.Conn, error)) *relay {
	ctx, cancel := context.WithCancel(ctx)
	r := &relay{listener: l, dial: dial, cancel: cancel}
	r.wg.Go(func() { r.accept(ctx) })
	return r
}

func (r *relay) close() {
	r.cancel()
	r.listener.Close()
	r.wg.Wait()
}

func (r *relay) accept(ctx context.Context) {
	for {
		c, err := r.listener.Accept()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			time.Sleep(10 * time.Millisecond) // out of descriptors
		default:
			resend.Soon(c)
			r.wg.Go(func() { r.join(ctx, c) })
		}
	}
}

func (r *relay) join(ctx context.Context, sw net.Conn) {
	defer sw.Close()
	ctl, err := r.dial(ctx)
	if err != nil {
		return
	}
	defer ctl.Close()
	resend.Soon(ctl)
	// Whichever ends first, closing both ends the other's copying too.
	stop := context.AfterFunc(ctx, func() { sw.Close(); ctl.Close() })
	defer stop()
	done := make(chan struct{}, 2)
	carry := func(to, from net.Conn) {
		_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 64<<10))
		done <- struct{}{}
	}
	go carry(ctl, sw)
	go carry(sw, ctl)
	<-done
	sw.Close()
	ctl.Close()
	<-done
}

// relays are the relays that run, by the keys of their posts.
type relays map[string]*relay

// keep has the lab's relays, and no others, run.
func (k relays) keep(ctx context.Context, s *layout.Lab) error {
	all := nodes.SwitchesOf(s).Posts()
	for key, r := range k {
		if !slices.ContainsFunc(all, func(p nodes.Post) bool { return p.Key == key }) {
			r.close()
			delete(k, key)
		}
	}
	for _, p := range all {
		if k[p.Key] != nil {
			continue
		}
		l, err := p.Listen()
		if err != nil {
			return fmt.Errorf("listen for switches: %w", err)
		}
		k[p.Key] = newRelay(ctx, l, p.To)
	}
	return nil
}
