package hosts

import (
	"slices"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// A hold keeps hosts from having routes until a stage has approved them.
// Meanwhile each of their packets is a packet-in, and flow.PacketIn.HeldBy
// names the stages that must approve.
type hold struct {
	stage    string
	at       []flow.Location // in order; port 0 means the whole switch; none: everywhere
	since    int64
	approved map[id]struct{}
}

const (
	maxStage     = 40 // characters of a stage's name
	holdPlaces   = 4096
	maxApprovals = 65_536 // of all stages
)

// holds is the set of all holds. A host records in bits which of them hold it.
// names takes no lock; name, find, bits, apply and applyAll are called with mu held; all
// others take it.
type holds struct {
	shared
	of     [flow.MaxHolds]*hold // by bit; nil is free
	stages atomic.Pointer[[1 << flow.MaxHolds][]string]
}

// names returns the stages for a set of bits.
func (s *holds) names(bits uint32) []string {
	if bits == 0 {
		return nil
	}
	return s.stages.Load()[bits]
}

// name builds the lists that names returns.
func (s *holds) name() {
	var lists [1 << flow.MaxHolds][]string
	for bits := range lists {
		for i, one := range s.of {
			if one != nil && bits>>i&1 == 1 {
				lists[bits] = append(lists[bits], one.stage)
			}
		}
	}
	s.stages.Store(&lists)
}

// find returns a stage's hold and its bit, nil if there is none.
func (s *holds) find(stage string) (*hold, int) {
	for i, one := range s.of {
		if one != nil && one.stage == stage {
			return one, i
		}
	}
	return nil, 0
}

// bits returns the holds that hold a host at a place.
func (s *holds) bits(who id, at flow.Location) (bits uint32) {
	for i, one := range s.of {
		if one != nil && one.holds(who, at) {
			bits |= 1 << i
		}
	}
	return bits
}

func (one *hold) holds(who id, at flow.Location) bool {
	if _, approved := one.approved[who]; approved {
		return false
	}
	if len(one.at) == 0 {
		return true
	}
	_, port := slices.BinarySearchFunc(one.at, at, compareLocations)
	_, all := slices.BinarySearchFunc(one.at, flow.Location{Switch: at.Switch}, compareLocations)
	return port || all
}

// on is bits for a sender that may not be known.
func (s *holds) on(who id, at flow.Location) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bits(who, at)
}

// apply records which holds hold a host.
func (s *holds) apply(h *host, at flow.Location) {
	if bits := s.bits(h.id, at); h.held.Swap(bits) != bits {
		s.index.invalidate(h)
		s.news.add(h)
	}
}

// applyAll is apply for all hosts, after a hold has changed.
func (s *holds) applyAll() {
	s.index.all(func(h *host) { s.apply(h, h.at.Load().Location) })
}

// readHold parses and checks a hold.
func readHold(m *api.HostHold) (*hold, error) {
	fail := func(form string, args ...any) (*hold, error) {
		return nil, api.Errorf(codes.InvalidArgument, form, args...)
	}
	if err := checkStage(m.GetStage()); err != nil {
		return nil, err
	}
	if len(m.At) > holdPlaces {
		return fail("hold of %s: %d places; want at most %d, or whole switches", m.Stage, len(m.At), holdPlaces)
	}
	one := &hold{stage: m.Stage, approved: map[id]struct{}{}}
	for _, l := range m.At {
		sw, err := flow.ParseDPID(l.GetDpid())
		if err != nil {
			return fail("hold of %s: %w", m.Stage, err)
		}
		at := flow.Location{Switch: sw, Port: flow.Port(l.GetPort())}
		if at.Port != 0 && !at.Port.Physical() {
			return fail("hold of %s: port %d of switch %v: want 1 to %d, or 0 for all", m.Stage, l.GetPort(), sw, uint32(flow.PortMax))
		}
		one.at = append(one.at, at)
	}
	slices.SortFunc(one.at, compareLocations)
	one.at = slices.Compact(one.at)
	return one, nil
}

// checkStage returns an error if a name cannot be a stage's.
func checkStage(name string) error {
	if name == "" || len(name) > maxStage || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || name[0] < 'a' || name[0] > 'z' {
		return api.Errorf(codes.InvalidArgument, "stage %.60q: want the name of a stage: lower-case letters, digits and -, beginning with a letter, at most %d", name, maxStage)
	}
	return nil
}

// set puts a hold into force. It replaces the hold of the same stage and
// keeps its approvals.
func (s *holds) set(one *hold) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, bit := s.find(one.stage)
	if old == nil {
		if bit = slices.Index(s.of[:], nil); bit < 0 {
			return api.Errorf(codes.ResourceExhausted, "%d stages hold hosts already; end the hold of one", flow.MaxHolds)
		}
	} else {
		one.since, one.approved = old.since, old.approved
	}
	s.of[bit] = one
	s.name() // before the first host has the bit
	s.applyAll()
	return nil
}

// drop ends a hold.
func (s *holds) drop(stage string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, bit := s.find(stage); one != nil {
		s.of[bit] = nil
		s.applyAll()
		s.name()
	}
}

// approve records the approval of a host, or revokes it.
func (s *holds) approve(stage string, who id, yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, _ := s.find(stage)
	if one == nil {
		return
	}
	if yes {
		one.approved[who] = struct{}{}
	} else {
		delete(one.approved, who)
	}
	if h := s.index.host(who); h != nil {
		s.apply(h, h.at.Load().Location)
	}
}

// isApproved reports whether a stage has approved a host. The error is NotFound
// if the stage has no hold.
func (s *holds) isApproved(stage string, who id) (approved bool, all int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, _ := s.find(stage)
	if one == nil {
		return false, 0, api.Errorf(codes.NotFound, "stage %.60q holds no hosts; weft host hold STAGE has it hold some", stage)
	}
	for _, other := range s.of {
		if other != nil {
			all += len(other.approved)
		}
	}
	_, approved = one.approved[who]
	return approved, all, nil
}

// readHost parses the host of an approval.
func readHost(mac string, vlan uint32) (id, error) {
	m, err := flow.ParseMAC(strings.ToLower(mac))
	if err != nil || m.Multicast() || m == (flow.MAC{}) {
		return 0, api.Errorf(codes.InvalidArgument, "mac %.40q: want the Ethernet address of a host, such as 02:00:00:00:00:01", mac)
	}
	if vlan > 4094 {
		return 0, api.Errorf(codes.InvalidArgument, "vlan %d: want 1 to 4094, or 0 for untagged", vlan)
	}
	return newID(m, uint16(vlan)), nil
}

// list returns the holds by stage, or that of one stage.
func (s *holds) list(stage string) *api.ListHoldsResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	var held [flow.MaxHolds]uint32
	s.index.all(func(h *host) {
		for i := range held {
			held[i] += h.held.Load() >> i & 1
		}
	})
	r := &api.ListHoldsResponse{}
	for i, one := range s.of {
		if one == nil || stage != "" && stage != one.stage {
			continue
		}
		m := one.message()
		m.Held = held[i]
		r.Holds = append(r.Holds, m)
	}
	slices.SortFunc(r.Holds, func(a, b *api.HostHold) int { return strings.Compare(a.Stage, b.Stage) })
	return r
}

// message returns the API's form of a hold, which is also stored.
func (one *hold) message() *api.HostHold {
	m := &api.HostHold{Stage: one.stage, Since: rfc3339(one.since), Approved: uint32(len(one.approved))}
	for _, at := range one.at {
		m.At = append(m.At, api.NewLocation(at))
	}
	return m
}
