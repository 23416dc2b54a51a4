package stats

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/weft-sdn/weft/api"
)

// portSample is the last reading of one port and the rates since the one
// before.
type portSample struct {
	last     *api.PortStats
	rxBytes  float64 // per second, as are the following
	txBytes  float64
	rxFrames float64
	txFrames float64
	interval time.Duration // 0: rates are not known
}

// sample is the last readings of one switch.
type sample struct {
	ports   map[uint32]portSample
	portsAt time.Time
	tables  []*api.TableStats
	owners  map[string]*ownerSample
	flows   map[uint64]volume // of each entry, by a hash of its identity
	flowsAt time.Time
	sum     sums
}

// volume is packets and bytes.
type volume struct{ packets, bytes uint64 }

// ownerSample is the sum over the flow entries of one owner.
type ownerSample struct {
	entries uint32
	volume
	packetRate, byteRate float64 // per second
}

// sums are a switch's counters over all ports.
type sums struct {
	rxBytes, txBytes, rxPackets, txPackets, errors, dropped uint64
	ports, entries                                          int
}

// setPorts applies a reading of the ports. Ports outside it are gone.
func (s *sample) setPorts(ports []*api.PortStats, now time.Time) {
	dt := now.Sub(s.portsAt)
	known := !s.portsAt.IsZero() && dt > 0
	old := s.ports
	s.ports = make(map[uint32]portSample, len(ports))
	s.portsAt = now
	entries := s.sum.entries
	s.sum = sums{ports: len(ports), entries: entries}
	for _, p := range ports {
		n := portSample{last: p}
		if o, there := old[p.GetPort()]; there && known && !wasReset(o.last, p) {
			n.interval = dt
			n.rxBytes = perSecond(o.last.GetRxBytes(), p.GetRxBytes(), dt)
			n.txBytes = perSecond(o.last.GetTxBytes(), p.GetTxBytes(), dt)
			n.rxFrames = perSecond(o.last.GetRxPackets(), p.GetRxPackets(), dt)
			n.txFrames = perSecond(o.last.GetTxPackets(), p.GetTxPackets(), dt)
		}
		s.ports[p.GetPort()] = n
		s.sum.rxBytes += counted(p.GetRxBytes())
		s.sum.txBytes += counted(p.GetTxBytes())
		s.sum.rxPackets += counted(p.GetRxPackets())
		s.sum.txPackets += counted(p.GetTxPackets())
		s.sum.errors += counted(p.GetRxErrors()) + counted(p.GetTxErrors())
		s.sum.dropped += counted(p.GetRxDropped()) + counted(p.GetTxDropped())
	}
}

// wasReset reports whether a port's counters have restarted.
func wasReset(before, after *api.PortStats) bool {
	for _, c := range [][2]uint64{
		{before.GetRxBytes(), after.GetRxBytes()}, {before.GetTxBytes(), after.GetTxBytes()},
		{before.GetRxPackets(), after.GetRxPackets()}, {before.GetTxPackets(), after.GetTxPackets()},
	} {
		if _, known := growth(c[0], c[1]); !known && c[0] != unsupported && c[1] != unsupported {
			return true
		}
	}
	return false
}

// setFlows applies a reading of the flow entries. It computes rates entry by
// entry, so that entries that come or go do not distort their owner's.
func (s *sample) setFlows(entries []*api.FlowEntry, seed maphash.Seed, now time.Time) {
	dt := now.Sub(s.flowsAt)
	known := !s.flowsAt.IsZero() && dt > 0
	old := s.flows
	s.flows = make(map[uint64]volume, len(entries))
	s.flowsAt = now
	s.sum.entries = len(entries)
	s.owners = map[string]*ownerSample{}
	for _, f := range entries {
		o := s.owners[f.GetOwner()]
		if o == nil {
			o = &ownerSample{}
			s.owners[f.GetOwner()] = o
		}
		v := volume{counted(f.GetPackets()), counted(f.GetBytes())}
		o.entries++
		o.packets += v.packets
		o.bytes += v.bytes
		id := identify(f, seed)
		s.flows[id] = v
		if !known {
			continue
		}
		before, there := old[id]
		if there && (v.packets < before.packets || v.bytes < before.bytes) || !there && f.GetDuration() > dt.Seconds()+1 {
			continue // counters restarted, or an entry that was overlooked
		}
		o.packetRate += float64(v.packets-before.packets) / dt.Seconds()
		o.byteRate += float64(v.bytes-before.bytes) / dt.Seconds()
	}
}

// identify returns a hash of an entry's identity: table, priority, match and
// cookie.
func identify(f *api.FlowEntry, seed maphash.Seed) uint64 {
	h := maphash.Comparable(seed, [2]uint32{f.GetTable(), f.GetPriority()}) ^ maphash.String(seed, f.GetCookie())
	for field, value := range f.GetMatch() {
		h += maphash.Comparable(seed, [2]string{field, value})
	}
	return h
}

// restart forgets the rates and their base: the switch is gone, or has
// reconnected and may have reset its counters.
func (s *sample) restart() {
	s.portsAt, s.flowsAt, s.flows = time.Time{}, time.Time{}, nil
	for number, p := range s.ports {
		s.ports[number] = portSample{last: p.last}
	}
	for _, o := range s.owners {
		o.packetRate, o.byteRate = 0, 0
	}
}

// portStats returns the API's view of the ports, by number.
func (s *sample) portStats() []*api.PortStats {
	list := make([]*api.PortStats, 0, len(s.ports))
	for _, number := range slices.Sorted(maps.Keys(s.ports)) {
		p := s.ports[number]
		list = append(list, &api.PortStats{
			Dpid: p.last.GetDpid(), Port: number,
			RxPackets: counted(p.last.GetRxPackets()), TxPackets: counted(p.last.GetTxPackets()),
			RxBytes: counted(p.last.GetRxBytes()), TxBytes: counted(p.last.GetTxBytes()),
			RxDropped: counted(p.last.GetRxDropped()), TxDropped: counted(p.last.GetTxDropped()),
			RxErrors: counted(p.last.GetRxErrors()), TxErrors: counted(p.last.GetTxErrors()),
			RxBitsPerS: 8 * p.rxBytes, TxBitsPerS: 8 * p.txBytes,
			RxPacketsPerS: p.rxFrames, TxPacketsPerS: p.txFrames, Interval: p.interval.Seconds(),
		})
	}
	return list
}

// tableStats returns the API's view of the tables, by number: those that hold
// entries or have seen packets.
func (s *sample) tableStats() []*api.TableStats {
	var list []*api.TableStats
	for _, t := range s.tables {
		if t.GetTable() == 0 || t.GetActive() > 0 || counted(t.GetLookups()) > 0 {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *api.TableStats) int { return cmp.Compare(a.GetTable(), b.GetTable()) })
	return list
}

// flowStats returns the API's view of the flow entries, by owner.
func (s *sample) flowStats(dpid string) []*api.FlowStats {
	list := make([]*api.FlowStats, 0, len(s.owners))
	for _, owner := range slices.Sorted(maps.Keys(s.owners)) {
		o := s.owners[owner]
		list = append(list, &api.FlowStats{
			Dpid: dpid, Owner: owner, Entries: o.entries, Packets: o.packets, Bytes: o.bytes,
			PacketsPerS: o.packetRate, BitsPerS: 8 * o.byteRate,
		})
	}
	return list
}
