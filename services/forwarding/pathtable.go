package forwarding

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// pathTable keeps the paths that another process has computed: a route that is
// programmed again is looked up here, and does not wait for that process. A path
// over a link that is lost goes at once; others are used, and asked for again
// beside the stage, when links have changed or a while has passed. Where paths
// are computed in this process, the table is empty.
type pathTable struct {
	mu      sync.Mutex // guards all below but again
	paths   map[pathKey]*keptPath
	version uint64 // grows whenever links change
	again   chan *api.FindPathRequest
}

// pathKey is what was asked for.
type pathKey struct {
	src, dst, kind string
	count          uint32
	hash           uint64
}

// keptPath is an answer, and when it came.
type keptPath struct {
	resp    *api.FindPathResponse
	at      time.Time
	version uint64
	asked   bool // again
}

// Bounds of the table. When it is full, it starts anew.
const (
	pathsKept  = 1 << 16
	pathsAsked = 1 << 12
	pathsFresh = 5 * time.Second  // after which a path is asked for again: links of other partitions change without word of it here
	pathsFor   = 10 * time.Second // after which it is not used
)

func newPathTable() *pathTable {
	return &pathTable{paths: map[pathKey]*keptPath{}, again: make(chan *api.FindPathRequest, pathsAsked)}
}

func keyOf(req *api.FindPathRequest) pathKey {
	return pathKey{src: req.Src, dst: req.Dst, kind: req.Kind, count: req.Count, hash: req.Hash}
}

// local returns a finder that looks into the table where find says that paths
// are computed elsewhere.
func (t *pathTable) local(find finder) finder {
	return func(req *api.FindPathRequest) (*api.FindPathResponse, error) {
		resp, err := find(req)
		if err == nil || api.KindOf(err) != codes.Unavailable {
			return resp, err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		kept := t.paths[keyOf(req)]
		if kept == nil {
			return nil, err
		}
		age := time.Since(kept.at)
		if age > pathsFor {
			return nil, err
		}
		if !kept.asked && (kept.version != t.version || age > pathsFresh) {
			select {
			case t.again <- req:
				kept.asked = true
			default: // when there is room
			}
		}
		return kept.resp, nil
	}
}

// keeping returns a finder that keeps what find finds, unless links have changed
// meanwhile. Responses are shared and not to be changed.
func (t *pathTable) keeping(find finder) finder {
	return func(req *api.FindPathRequest) (*api.FindPathResponse, error) {
		t.mu.Lock()
		version := t.version
		t.mu.Unlock()
		resp, err := find(req)
		if err != nil || len(resp.Paths) == 0 {
			return resp, err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.version == version {
			if len(t.paths) >= pathsKept {
				clear(t.paths)
			}
			t.paths[keyOf(req)] = &keptPath{resp: resp, at: time.Now(), version: version}
		} else if kept := t.paths[keyOf(req)]; kept != nil {
			kept.asked = false
		}
		return resp, nil
	}
}

// refresh asks again for what local has found too old, until ctx ends.
func (t *pathTable) refresh(ctx context.Context, find finder) {
	for {
		select {
		case <-ctx.Done():
			return
		case req := <-t.again:
			if _, err := find(req); err != nil { // it is asked for when it is used no more
				t.mu.Lock()
				delete(t.paths, keyOf(req))
				t.mu.Unlock()
			}
		}
	}
}

// invalidate discards cached paths because links have changed; lost lists the ports
// that have lost theirs.
func (t *pathTable) invalidate(lost map[flow.Location]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version++
	if len(lost) == 0 {
		return
	}
	for key, kept := range t.paths {
		if slices.ContainsFunc(kept.resp.Paths, func(p *api.Path) bool { return crosses(p, lost) }) {
			delete(t.paths, key)
		}
	}
}

// crosses reports whether a path needs one of the ports.
func crosses(p *api.Path, ports map[flow.Location]bool) bool {
	return slices.ContainsFunc(p.Hops, func(h *api.Hop) bool {
		sw, err := flow.ParseDPID(h.Dpid)
		return err != nil || ports[flow.Location{Switch: sw, Port: flow.Port(h.InPort)}] || ports[flow.Location{Switch: sw, Port: flow.Port(h.OutPort)}]
	})
}
