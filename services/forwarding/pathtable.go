package forwarding

import (
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
)

// pathTable keeps the paths that another process has computed, until a link
// changes: a route that is programmed again is looked up here, and does not wait
// for that process. Where paths are computed in this process, it is not used.
type pathTable struct {
	mu      sync.RWMutex // guards all below
	paths   map[pathKey]keptPath
	version uint64 // grows whenever the table is emptied
}

// keptPath is an answer, and when it came.
type keptPath struct {
	resp *api.FindPathResponse
	at   time.Time
}

// pathsFor is how long a path is kept at most: links of other partitions change
// without word of it here.
const pathsFor = 10 * time.Second

// pathKey is what was asked for.
type pathKey struct {
	src, dst, kind string
	count          uint32
	hash           uint64
}

// pathsKept bounds the table; when it is full, it starts anew.
const pathsKept = 1 << 16

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
		t.mu.RLock()
		defer t.mu.RUnlock()
		if kept, ok := t.paths[keyOf(req)]; ok && time.Since(kept.at) < pathsFor {
			return kept.resp, nil
		}
		return nil, err
	}
}

// keeping returns a finder that keeps what find finds, unless a link has changed
// meanwhile. Responses are shared and not to be changed.
func (t *pathTable) keeping(find finder) finder {
	return func(req *api.FindPathRequest) (*api.FindPathResponse, error) {
		t.mu.RLock()
		version := t.version
		t.mu.RUnlock()
		resp, err := find(req)
		if err != nil || len(resp.Paths) == 0 {
			return resp, err
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.version == version {
			if t.paths == nil || len(t.paths) >= pathsKept {
				t.paths = map[pathKey]keptPath{}
			}
			t.paths[keyOf(req)] = keptPath{resp, time.Now()}
		}
		return resp, nil
	}
}

// forget empties the table: links have changed.
func (t *pathTable) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paths = nil
	t.version++
}
