package weft

import (
	"hash/maphash"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// NewObjectFlows is NewBaselineFlows for a set that is the union of the flows,
// groups and meters of objects. RecomputeObjects then costs as much as the
// objects named, however large the set is. names returns the objects of a switch.
// compile returns what one object needs there, or nil if the switch has the object
// no longer. Flows, groups and meters that several objects share must be equal.
func NewObjectFlows(env *Env, owner flow.Owner, names func(*api.Switch) []string, compile func(sw *api.Switch, name string) *api.SetStandingRequest) *BaselineFlows {
	k := NewBaselineFlows(env, owner, nil)
	k.objectNames, k.objectFlows = names, compile
	return k
}

// RecomputeObjects computes and sends some objects of a switch again.
func (k *BaselineFlows) RecomputeObjects(sw flow.DPID, names ...string) {
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
	k.enqueue(s)
}

// sentObjects is the set that was sent to a switch, by object. Only the switch's
// goroutine uses it.
type sentObjects struct {
	objects map[string]objectKeys
	flows   refCounts[string] // by entryKey
	groups  refCounts[uint32]
	meters  refCounts[uint32]
}

// objectKeys lists the flows, groups and meters of one object.
type objectKeys struct {
	flows          []string
	groups, meters []uint32
}

// refCounts maps each flow, group or meter to the objects that need it.
type refCounts[K comparable] map[K]refCount

// refCount is the number of objects that need a thing, and a hash of its content.
type refCount struct {
	objects int
	hash    uint64
}

func newSentObjects() *sentObjects {
	return &sentObjects{objects: map[string]objectKeys{}, flows: refCounts[string]{}, groups: refCounts[uint32]{}, meters: refCounts[uint32]{}}
}

// replace replaces an object and adds the resulting changes to a request.
func (p *sentObjects) replace(name string, now *api.SetStandingRequest, seed maphash.Seed, req *api.SetStandingRequest) {
	old := p.objects[name]
	is := objectKeys{
		flows:  addRefs(p.flows, now.GetFlows(), entryKey, seed, &req.Flows),
		groups: addRefs(p.groups, now.GetGroups(), (*api.Group).GetId, seed, &req.Groups),
		meters: addRefs(p.meters, now.GetMeters(), (*api.Meter).GetId, seed, &req.Meters),
	}
	for _, k := range dropRefs(p.flows, old.flows) {
		f := &api.FlowEntry{}
		_ = proto.Unmarshal([]byte(k), f) // entryKey encoded it
		f.Dpid = req.Dpid
		req.Gone = append(req.Gone, f)
	}
	req.GoneGroups = append(req.GoneGroups, dropRefs(p.groups, old.groups)...)
	req.GoneMeters = append(req.GoneMeters, dropRefs(p.meters, old.meters)...)
	if p.objects[name] = is; len(is.flows)+len(is.groups)+len(is.meters) == 0 {
		delete(p.objects, name)
	}
}

// keepShared removes from a request the deletions of what other objects need by now.
func (p *sentObjects) keepShared(req *api.SetStandingRequest) {
	req.Gone = slices.DeleteFunc(req.Gone, func(f *api.FlowEntry) bool { return p.flows[entryKey(f)].objects > 0 })
	req.GoneGroups = slices.DeleteFunc(req.GoneGroups, func(id uint32) bool { return p.groups[id].objects > 0 })
	req.GoneMeters = slices.DeleteFunc(req.GoneMeters, func(id uint32) bool { return p.meters[id].objects > 0 })
}

// addRefs counts what an object needs, and appends to news what is new or has
// changed. It returns the keys.
func addRefs[K comparable, M proto.Message](in refCounts[K], list []M, key func(M) K, seed maphash.Seed, news *[]M) (has []K) {
	for _, m := range list {
		k := key(m)
		text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m) // fails only for strings that are not UTF-8
		c := refCount{in[k].objects + 1, maphash.Bytes(seed, text)}
		if c.objects == 1 || c.hash != in[k].hash {
			*news = append(*news, m)
		}
		in[k] = c
		has = append(has, k)
	}
	return has
}

// dropRefs uncounts what an object needed, and returns what no object needs now.
func dropRefs[K comparable](in refCounts[K], had []K) (gone []K) {
	for _, k := range had {
		if c := in[k]; c.objects > 1 {
			in[k] = refCount{c.objects - 1, c.hash}
			continue
		}
		delete(in, k)
		gone = append(gone, k)
	}
	return gone
}

// entryKey encodes the table, priority and match, which identify an entry on a switch.
func entryKey(f *api.FlowEntry) string {
	text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(&api.FlowEntry{Table: f.Table, Priority: f.Priority, Match: f.Match})
	return string(text)
}

// buildRequest returns the request to send: the objects that have changed, or the
// whole set if the switch has not confirmed one in this session.
func (k *BaselineFlows) buildRequest(s *switchFlows, info *api.Switch, dirty map[string]bool, whole, keep bool) *api.SetStandingRequest {
	h, _ := flow.ParseHybrid(info.Description)
	none := h != nil && !k.owner.OnHybrid()
	var req *api.SetStandingRequest
	switch {
	case k.objectFlows == nil && !none:
		req = k.want(info)
	case k.objectFlows == nil || none:
	case whole || s.revision == 0:
		req = &api.SetStandingRequest{Dpid: info.Dpid}
		s.sent = newSentObjects()
		for _, name := range k.objectNames(info) {
			s.sent.replace(name, k.objectFlows(info, name), k.seed, req)
		}
	default:
		req = &api.SetStandingRequest{Dpid: info.Dpid, Base: s.revision}
		for _, name := range slices.Sorted(maps.Keys(dirty)) {
			s.sent.replace(name, k.objectFlows(info, name), k.seed, req)
		}
		s.sent.keepShared(req)
	}
	if req == nil {
		req = &api.SetStandingRequest{}
	}
	if req.Dpid, req.Owner, req.Keep = info.Dpid, k.owner.String(), keep; k.objectFlows != nil && !none {
		req.Revision = k.revisions.Add(1)
	}
	return req
}
