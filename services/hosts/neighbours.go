package hosts

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// Hosts ask each other again and again whether they are still there, by unicast
// ARP and neighbour discovery. A switch lets through what a known host says of
// itself at its port: then the routes lead it to the other host, also while no
// controller runs. All else comes to the controller, as evidence: a new address, a
// new place, a claim to somebody else's.
//
// A speech is what a switch lets through of one host. table.mu guards it.
type speech struct {
	at  flow.Location
	sw  *attached
	ips []netip.Addr
}

// entriesFor returns how many entries an address takes.
func entriesFor(ip netip.Addr) int {
	if ip.Is4() {
		return 1
	}
	return 3
}

// entries returns how many entries the speech takes. It may be nil.
func (s *speech) entries() (n int) {
	if s != nil {
		for _, ip := range s.ips {
			n += entriesFor(ip)
		}
	}
	return n
}

func (s *speech) equal(o *speech) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.at == o.at && s.sw == o.sw && slices.Equal(s.ips, o.ips)
}

// spoken is the hosts whose speech has changed, by the switches concerned.
// table.mu guards it.
type spoken map[flow.DPID]map[id]struct{}

// speak brings the speech of a host up to date after a change of its place, its
// addresses, its holds, or of its port's role; mu is held.
func (t *table) speak(now int64, h *host) {
	was, is := h.speech, t.speechOf(now, h)
	if is.equal(was) {
		return
	}
	h.speech = is
	for _, s := range [...]*speech{was, is} {
		if s == nil {
			continue
		}
		if t.spoken[s.at.Switch] == nil {
			t.spoken[s.at.Switch] = map[id]struct{}{}
		}
		t.spoken[s.at.Switch][h.id] = struct{}{}
	}
	if was != nil {
		was.sw.spoken -= was.entries()
	}
	if is != nil {
		is.sw.spoken += is.entries()
	}
	t.news.notify()
}

// speechOf returns what the switch of a host is to let through; nil for nothing.
func (t *table) speechOf(now int64, h *host) *speech {
	p := h.at.Load()
	if h.gone.Load() || len(h.addresses) == 0 || h.held.Load() != 0 || p.sw.table == 0 || p.role != flow.RoleEdge && p.role != flow.RoleUnsettled {
		return nil
	}
	s := &speech{at: p.Location, sw: p.sw}
	room := t.cfg.NeighbourEntries - p.sw.spoken
	if h.speech != nil && h.speech.sw == p.sw {
		room += h.speech.entries()
	}
	for i := range h.addresses {
		ip := h.addresses[i].ip
		n := entriesFor(ip)
		if n > room {
			if t.cfg.NeighbourEntries > 0 {
				t.reached.Reach(now, "hosts.neighbour_entries", t.cfg.NeighbourEntries, fmt.Sprintf("switch %v", p.Switch))
			}
			break
		}
		room -= n
		s.ips = append(s.ips, ip)
	}
	if len(s.ips) == 0 {
		return nil
	}
	return s
}

// speakAt is speak for all hosts at a port.
func (t *table) speakAt(now int64, p *place) {
	for h := range p.hosts {
		t.speak(now, h)
	}
}

// drainSpoken returns the hosts whose speech has changed since it was last called,
// by switch, as names of pieces.
func (t *table) drainSpoken() map[flow.DPID][]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make(map[flow.DPID][]string, len(t.spoken))
	for sw, ids := range t.spoken {
		for who := range ids {
			names[sw] = append(names[sw], pieceName(who))
		}
	}
	clear(t.spoken)
	return names
}

// pieceName returns the name of the piece of a host.
func pieceName(who id) string { return strconv.FormatUint(uint64(who), 16) }

// answers is the name of the piece by which answers to Weft's own questions come to
// the controller, whoever is let through.
const answers = "answers"

// answerEntries returns its entries.
func (t *table) answerEntries() (list []flow.Entry) {
	for _, m := range (flow.Match{}).WithEthDst(flow.MACFrom(t.probes)).Neighbourly() {
		list = append(list, flow.Entry{
			Table: flow.TableNeighbours, Priority: flow.PriorityNeighbourAsk, Match: m, Apply: []flow.Action{flow.Output(flow.PortController)},
			Cookie: flow.NewCookie(flow.OwnerNeighbours, 0, 0),
		})
	}
	return list
}

// speakers returns the pieces of a switch: its answers, and the hosts that it lets
// speak.
func (t *table) speakers(info *api.Switch) (names []string) {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.switches[sw]
	if a == nil || a.table == 0 {
		return nil
	}
	names = append(names, answers)
	for _, p := range a.places {
		for h := range p.hosts {
			if h.speech != nil && h.speech.sw == a {
				names = append(names, pieceName(h.id))
			}
		}
	}
	slices.Sort(names)
	return names
}

// speech returns the entries of a piece; nil if the switch has none of it.
func (t *table) speech(info *api.Switch, name string) *api.SetStandingRequest {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []flow.Entry
	if name == answers {
		list = t.answerEntries()
	} else if n, err := strconv.ParseUint(name, 16, 64); err == nil {
		h := t.host(id(n))
		if h == nil || h.speech == nil || h.speech.at.Switch != sw {
			return nil
		}
		list = h.speech.list(h.id)
	}
	req := &api.SetStandingRequest{}
	for i := range list {
		req.Flows = append(req.Flows, api.NewFlowEntry(sw, &list[i]))
	}
	return req
}

// list returns the entries of a host's speech.
func (s *speech) list(who id) (list []flow.Entry) {
	in := flow.Match{}.WithInPort(s.at.Port).WithoutVLAN()
	if v := who.vlan(); v != 0 {
		in = in.WithVLAN(v)
	}
	for _, ip := range s.ips {
		for _, m := range in.Speaking(who.mac(), ip) {
			list = append(list, flow.Entry{
				Table: flow.TableNeighbours, Priority: flow.PriorityNeighbour, Match: m, Goto: flow.TableForward,
				Cookie: flow.NewCookie(flow.OwnerNeighbours, 0, 0),
			})
		}
	}
	return list
}

// speaking returns how many entries let hosts speak, on all switches.
func (t *table) speaking() (n int) {
	for _, a := range t.switches {
		n += a.spoken
	}
	return n
}
