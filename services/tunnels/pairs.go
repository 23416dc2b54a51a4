package tunnels

import "github.com/weft-sdn/weft/flow"

// A pair identifies the two tunnel ports of two switches.
type pair struct {
	kind string
	a, b flow.DPID // the smaller first
}

func newPair(kind string, x, y flow.DPID) pair { return pair{kind, min(x, y), max(x, y)} }

// ports is what is known of a pair.
type ports struct {
	a, b   flow.Port
	state  string
	reason string
}

// The states of tunnel ports, as nodes tells them.
const (
	portUp      = "up"
	portWaiting = "waiting"
)

// pathOver returns the path of an overlay over a pair.
func (k pair) pathOver(t *tunnel, at ports) lsp {
	if t.from != k.a {
		at.a, at.b = at.b, at.a
	}
	return lsp{{sw: t.from, out: at.a}, {sw: t.to, in: at.b}}
}

// has reports whether a path leads over a pair with these ports.
func (k pair) has(at ports, p lsp) bool {
	if p[0].sw == k.a {
		return p[0].out == at.a && p[1].in == at.b
	}
	return p[0].out == at.b && p[1].in == at.a
}

// A pairTable is the tunnel ports of overlays. The store's mu guards it.
type pairTable struct {
	ports    map[pair]ports     // those that are known
	asked    map[pair]bool      // that nodes has, as far as is known
	answered bool               // nodes has said which there are
	overlays map[string]*status // the tunnels that want or have a path over a tunnel port
}

func newPairTable() pairTable {
	return pairTable{ports: map[pair]ports{}, asked: map[pair]bool{}, overlays: map[string]*status{}}
}

// pairOf returns the pair that a path leads over; false if none is known to have its
// ports.
func (t *pairTable) pairOf(p lsp) (pair, bool) {
	for _, kind := range []string{"vxlan", "gre"} {
		k := newPair(kind, p[0].sw, p[1].sw)
		if at, is := t.ports[k]; is && k.has(at, p) {
			return k, true
		}
	}
	return pair{}, false
}

// suits reports whether a path is one of the transport that is wanted.
func (t *pairTable) suits(m *tunnel, p lsp) bool {
	if !p.overlay() || !m.overlay() {
		return p.overlay() == m.overlay()
	}
	k, known := t.pairOf(p)
	return !known || k.kind == m.wanted.Transport
}

// wanted returns the pairs that tunnels want, or still have.
func (t *pairTable) wanted() map[pair]bool {
	want := map[pair]bool{}
	for _, s := range t.overlays {
		if s.tunnel.overlay() {
			want[newPair(s.tunnel.wanted.Transport, s.tunnel.from, s.tunnel.to)] = true
		}
		for _, p := range s.installed() {
			if !p.overlay() {
				continue
			}
			if k, known := t.pairOf(p); known {
				want[k] = true
			}
		}
	}
	return want
}
