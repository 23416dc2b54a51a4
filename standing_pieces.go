package weft

import (
	"hash/maphash"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// KeepPieces is KeepStanding of a set that is made of pieces, such as the entries of
// each object: what ChangedPieces causes costs as much as those pieces, however large the
// set is. names returns the pieces that a switch has, and piece the flows, groups and
// meters of one, nil if the switch has it no more. Those that several pieces have are equal.
func KeepPieces(env *Env, owner flow.Owner, names func(*api.Switch) []string, piece func(sw *api.Switch, name string) *api.SetStandingRequest) *Standing {
	k := KeepStanding(env, owner, nil)
	k.names, k.piece = names, piece
	return k
}

// ChangedPieces has some pieces of a switch computed and declared again.
func (k *Standing) ChangedPieces(sw flow.DPID, names ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.switches[sw]
	if s == nil || len(names) == 0 {
		return
	}
	if s.dirty == nil {
		s.dirty = map[string]bool{}
	}
	for _, name := range names {
		s.dirty[name] = true
	}
	k.askPart(s)
}

// pieces is what was declared for a switch: which pieces have what, and what is
// in any of them. Its owner is the goroutine that sees to the switch.
type pieces struct {
	of     map[string]keys
	flows  shared[string] // by table, priority and match, encoded
	groups shared[uint32]
	meters shared[uint32]
}

// keys is what one piece has.
type keys struct {
	flows          []string
	groups, meters []uint32
}

// shared counts the pieces that have something, and says what it is by a hash.
type shared[K comparable] map[K]count

type count struct {
	pieces int
	hash   uint64
}

func newPieces() *pieces {
	return &pieces{of: map[string]keys{}, flows: shared[string]{}, groups: shared[uint32]{}, meters: shared[uint32]{}}
}

// set replaces a piece, and adds to a request what changes by that.
func (p *pieces) set(name string, now *api.SetStandingRequest, seed maphash.Seed, req *api.SetStandingRequest) {
	old := p.of[name]
	is := keys{
		flows:  put(p.flows, now.GetFlows(), entryKey, seed, &req.Flows),
		groups: put(p.groups, now.GetGroups(), (*api.Group).GetId, seed, &req.Groups),
		meters: put(p.meters, now.GetMeters(), (*api.Meter).GetId, seed, &req.Meters),
	}
	for _, k := range take(p.flows, old.flows) {
		f := &api.FlowEntry{}
		_ = proto.Unmarshal([]byte(k), f) // entryKey has written it
		f.Dpid = req.Dpid
		req.Gone = append(req.Gone, f)
	}
	req.GoneGroups = append(req.GoneGroups, take(p.groups, old.groups)...)
	req.GoneMeters = append(req.GoneMeters, take(p.meters, old.meters)...)
	if p.of[name] = is; len(is.flows)+len(is.groups)+len(is.meters) == 0 {
		delete(p.of, name)
	}
}

// again takes back what some pieces have ended and others have begun meanwhile.
func (p *pieces) again(req *api.SetStandingRequest) {
	req.Gone = slices.DeleteFunc(req.Gone, func(f *api.FlowEntry) bool { return p.flows[entryKey(f)].pieces > 0 })
	req.GoneGroups = slices.DeleteFunc(req.GoneGroups, func(id uint32) bool { return p.groups[id].pieces > 0 })
	req.GoneMeters = slices.DeleteFunc(req.GoneMeters, func(id uint32) bool { return p.meters[id].pieces > 0 })
}

// put counts what a piece has, and appends to news what is new or has changed.
func put[K comparable, M proto.Message](in shared[K], list []M, key func(M) K, seed maphash.Seed, news *[]M) (has []K) {
	for _, m := range list {
		k := key(m)
		text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m) // only strings that are no text fail
		c := count{in[k].pieces + 1, maphash.Bytes(seed, text)}
		if c.pieces == 1 || c.hash != in[k].hash {
			*news = append(*news, m)
		}
		in[k] = c
		has = append(has, k)
	}
	return has
}

// take counts what a piece has had down, and returns what no piece has any more.
func take[K comparable](in shared[K], had []K) (gone []K) {
	for _, k := range had {
		if c := in[k]; c.pieces > 1 {
			in[k] = count{c.pieces - 1, c.hash}
			continue
		}
		delete(in, k)
		gone = append(gone, k)
	}
	return gone
}

// entryKey encodes what names an entry on a switch.
func entryKey(f *api.FlowEntry) string {
	text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(&api.FlowEntry{Table: f.Table, Priority: f.Priority, Match: f.Match})
	return string(text)
}

// request returns what is to be declared: the pieces that have changed, or
// the whole set if the switch has not confirmed one of this session.
func (k *Standing) request(s *standing, info *api.Switch, dirty map[string]bool, whole, keep bool) *api.SetStandingRequest {
	h, _ := flow.ParseHybrid(info.Description)
	none := h != nil && !k.owner.OnHybrid()
	var req *api.SetStandingRequest
	switch {
	case k.piece == nil && !none:
		req = k.want(info)
	case k.piece == nil || none:
	case whole || s.revision == 0:
		req = &api.SetStandingRequest{Dpid: info.Dpid}
		s.pieces = newPieces()
		for _, name := range k.names(info) {
			s.pieces.set(name, k.piece(info, name), k.seed, req)
		}
	default:
		req = &api.SetStandingRequest{Dpid: info.Dpid, Base: s.revision}
		for _, name := range slices.Sorted(maps.Keys(dirty)) {
			s.pieces.set(name, k.piece(info, name), k.seed, req)
		}
		s.pieces.again(req)
	}
	if req == nil {
		req = &api.SetStandingRequest{}
	}
	if req.Dpid, req.Owner, req.Keep = info.Dpid, k.owner.String(), keep; k.piece != nil && !none {
		req.Revision = k.revisions.Add(1)
	}
	return req
}
