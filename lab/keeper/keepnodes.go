package keeper

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/nodes"
)

// nodeKeeping is what the keeper does for nodes now.
type nodeKeeping struct {
	daemons, entity under
	config          []byte // what `weft node run` was started with
	log             *programLog
}

// under is something under way that can be ended.
type under struct {
	stop context.CancelFunc
	wg   sync.WaitGroup
}

func (u *under) begin(ctx context.Context, do func(context.Context)) {
	ctx, u.stop = context.WithCancel(ctx)
	u.wg.Go(func() { do(ctx) })
}

func (u *under) end() {
	if u.stop != nil {
		u.stop()
		u.wg.Wait()
		u.stop = nil
	}
}

// keep has the daemons of nodes started again when they end, from now on:
// not of those that an apply is at work on.
func (n *nodeKeeping) keep(ctx context.Context, s *layout.Lab) error {
	n.daemons.end()
	if len(s.Nodes) == 0 {
		n.entity.end()
		return nil
	}
	n.daemons.begin(ctx, func(ctx context.Context) { keepDaemons(ctx, nodes.RoutersOf(s).Daemons()) })
	config, err := os.ReadFile(nodes.RoutersOf(s).NodesFile())
	if err != nil || !s.HasHybrid() {
		n.entity.end()
		return nil // there is no hybrid node, or it is not made yet
	}
	config = append(config, nodes.RoutersOf(s).NodeOptions()...)
	if n.entity.stop != nil && bytes.Equal(config, n.config) {
		return nil
	}
	n.entity.end()
	if n.log == nil {
		if n.log, err = openLog(filepath.Join(s.Dir(), "node.log")); err != nil {
			return err
		}
	}
	n.config = config
	n.entity.begin(ctx, func(ctx context.Context) { keepEntity(ctx, nodes.RoutersOf(s), n.log) })
	return nil
}

func (n *nodeKeeping) close() {
	n.daemons.end()
	n.entity.end()
	if n.log != nil {
		n.log.Close()
	}
}
