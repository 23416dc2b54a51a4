package nat

import (
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// counters are the counts of a gateway's entries.
type counters struct {
	last    [kindInvalid + 1]uint64 // as last reported by the switch
	read    bool                    // reported since the service started
	refused uint64                  // packets for which no address and port were free
	at      int64                   // when the last was seen
}

// refusal is packets of a gateway dropped because no port was free.
type refusal struct {
	gateway string
	packets uint64
}

// counted takes the entries that a switch reports, and returns the refusals since
// the last call. It leaves out what a switch counted before the service started.
func (b *store) counted(sw flow.DPID, list []*api.FlowEntry, now int64) []refusal {
	sums := map[uint16]*[kindInvalid + 1]uint64{}
	for _, m := range list {
		_, e, err := m.Entry()
		if err != nil || e.Cookie.Owner() != flow.OwnerNAT || kind(e.Cookie.ID()) > kindInvalid {
			continue
		}
		zone := uint16(e.Cookie.ID() >> 8)
		if sums[zone] == nil {
			sums[zone] = &[kindInvalid + 1]uint64{}
		}
		sums[zone][kind(e.Cookie.ID())] += m.Packets
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []refusal
	for _, g := range b.gateways.List() {
		sum := sums[g.zone]
		if g.at.Switch != sw || sum == nil {
			continue
		}
		f := b.counters[g.name]
		n := sum[kindExhausted]
		if was := f.last[kindExhausted]; n >= was && f.read {
			n -= was
		} else if !f.read {
			n = 0
		}
		if f.last, f.read = *sum, true; n > 0 {
			f.refused, f.at = f.refused+n, now
			out = append(out, refusal{g.name, n})
			ports := uint64(g.ports[1]-g.ports[0]) + 1
			b.reached.Reach(now, "--pool and --ports of a nat gateway", int(span(g.first, g.last)*ports), "gateway "+g.name)
		}
	}
	return out
}

// exhausted reports whether a packet was refused lately because no port was free.
// It is called with mu held.
func (b *store) exhausted(f *counters, now int64) bool {
	return f.at != 0 && now-f.at < int64(b.cfg.Load().Exhausted)
}

// read returns the metrics of a gateway: the packets that it has translated on
// their way out and in, and whether its pool is exhausted.
func (b *store) read(name string, now int64) (out, in float64, exhausted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.counters[name]
	if f == nil {
		return 0, 0, false
	}
	return float64(f.last[kindOut]), float64(f.last[kindIn]), b.exhausted(f, now)
}
