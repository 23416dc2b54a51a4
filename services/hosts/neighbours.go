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
// A permit is what a switch lets through of one host. table.mu guards it.
type permit struct {
	at  flow.Location
	sw  *switchState
	ips []netip.Addr
}

// entriesFor returns how many entries an address takes.
func entriesFor(ip netip.Addr) int {
	if ip.Is4() {
		return 1
	}
	return 3
}

// entries returns how many entries the permit takes. It may be nil.
func (s *permit) entries() (n int) {
	if s != nil {
		for _, ip := range s.ips {
			n += entriesFor(ip)
		}
	}
	return n
}

func (s *permit) equal(o *permit) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.at == o.at && s.sw == o.sw && slices.Equal(s.ips, o.ips)
}

// permits decides the permits of hosts and holds which have changed. update, of, updateAt
// and entries are called with mu held, the others take it.
type permits struct {
	shared
	places    *places // the table's, as questions
	questions *questions
	changed   map[flow.DPID]map[id]struct{} // the hosts, by the switches concerned
}

// update brings the permit of a host up to date after a change of its place, its
// addresses, its holds, or of its port's role.
func (s *permits) update(now int64, h *host) {
	was, is := h.permit, s.of(now, h)
	if is.equal(was) {
		return
	}
	h.permit = is
	for _, one := range [...]*permit{was, is} {
		if one == nil {
			continue
		}
		if s.changed[one.at.Switch] == nil {
			s.changed[one.at.Switch] = map[id]struct{}{}
		}
		s.changed[one.at.Switch][h.id] = struct{}{}
	}
	if was != nil {
		was.sw.permitted -= was.entries()
	}
	if is != nil {
		is.sw.permitted += is.entries()
	}
	s.news.notify()
}

// of returns what the switch of a host is to let through; nil for nothing.
func (s *permits) of(now int64, h *host) *permit {
	p := h.at.Load()
	if h.gone.Load() || len(h.addresses) == 0 || h.held.Load() != 0 || p.sw.table == 0 || p.role != flow.RoleEdge && p.role != flow.RoleUnsettled {
		return nil
	}
	one := &permit{at: p.Location, sw: p.sw}
	room := s.cfg.NeighbourEntries - p.sw.permitted
	if h.permit != nil && h.permit.sw == p.sw {
		room += h.permit.entries()
	}
	for i := range h.addresses {
		ip := h.addresses[i].ip
		n := entriesFor(ip)
		if n > room {
			if s.cfg.NeighbourEntries > 0 {
				s.reached.Reach(now, "hosts.neighbour_entries", s.cfg.NeighbourEntries, fmt.Sprintf("switch %v", p.Switch))
			}
			break
		}
		room -= n
		one.ips = append(one.ips, ip)
	}
	if len(one.ips) == 0 {
		return nil
	}
	return one
}

// updateAt is update for all hosts at a port.
func (s *permits) updateAt(now int64, p *place) {
	for h := range p.hosts {
		s.update(now, h)
	}
}

// routesIn records the table in which a switch has its routes.
func (s *permits) routesIn(now int64, sw flow.DPID, table uint8) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.places.switchOf(sw)
	if a.table == table {
		return
	}
	a.table = table
	for _, p := range a.places {
		s.updateAt(now, p)
	}
}

// drain returns the hosts whose permit has changed since it was last called, by switch,
// as names of pieces.
func (s *permits) drain() map[flow.DPID][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make(map[flow.DPID][]string, len(s.changed))
	for sw, ids := range s.changed {
		for who := range ids {
			names[sw] = append(names[sw], pieceName(who))
		}
	}
	clear(s.changed)
	return names
}

// pieceName returns the name of the piece of a host.
func pieceName(who id) string { return strconv.FormatUint(uint64(who), 16) }

// answers is the name of the piece by which answers to Weft's own questions come to
// the controller, whoever is let through.
const answers = "answers"

// answerEntries returns its entries.
func (q *questions) answerEntries() (list []flow.Entry) {
	for _, m := range (flow.Match{}).WithEthDst(flow.MACFrom(q.probes)).ARPOrND() {
		list = append(list, flow.Entry{
			Table: flow.TableNeighbours, Priority: flow.PriorityNeighbourAsk, Match: m, Apply: []flow.Action{flow.Output(flow.PortController)},
			Cookie: flow.NewCookie(flow.OwnerNeighbours, 0, 0),
		})
	}
	return list
}

// pieces returns the pieces of a switch: its answers, and the hosts that have
// permits.
func (s *permits) pieces(info *api.Switch) (names []string) {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.places.switches[sw]
	if a == nil || a.table == 0 {
		return nil
	}
	names = append(names, answers)
	for _, p := range a.places {
		for h := range p.hosts {
			if h.permit != nil && h.permit.sw == a {
				names = append(names, pieceName(h.id))
			}
		}
	}
	slices.Sort(names)
	return names
}

// piece returns the entries of a piece; nil if the switch has none of it.
func (s *permits) piece(info *api.Switch, name string) *api.SetStandingRequest {
	sw, err := flow.ParseDPID(info.GetDpid())
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []flow.Entry
	if name == answers {
		list = s.questions.answerEntries()
	} else if n, err := strconv.ParseUint(name, 16, 64); err == nil {
		h := s.index.host(id(n))
		if h == nil || h.permit == nil || h.permit.at.Switch != sw {
			return nil
		}
		list = h.permit.list(h.id)
	}
	req := &api.SetStandingRequest{}
	for i := range list {
		req.Flows = append(req.Flows, api.NewFlowEntry(sw, &list[i]))
	}
	return req
}

// list returns the entries of a host's permit.
func (s *permit) list(who id) (list []flow.Entry) {
	in := flow.Match{}.WithInPort(s.at.Port).WithoutVLAN()
	if v := who.vlan(); v != 0 {
		in = in.WithVLAN(v)
	}
	for _, ip := range s.ips {
		for _, m := range in.OwnARPOrND(who.mac(), ip) {
			list = append(list, flow.Entry{
				Table: flow.TableNeighbours, Priority: flow.PriorityNeighbour, Match: m, Goto: flow.TableForward,
				Cookie: flow.NewCookie(flow.OwnerNeighbours, 0, 0),
			})
		}
	}
	return list
}

// entries returns how many entries permits take, on all switches.
func (s *permits) entries() (n int) {
	for _, a := range s.places.switches {
		n += a.permitted
	}
	return n
}
