package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/object"
)

// switchNames are the names of switches: those that operators have given, and those by which switches
// call themselves. A request may have them wherever it has datapath identifiers.
type switchNames struct {
	bucket object.Bucket // given names, with the switch that has each

	mu        sync.Mutex // guards the following
	given     map[string]flow.DPID
	described map[flow.DPID]string // by which a switch calls itself, also while it is away
	counted   *nameTable           // of given and described; nil if these have changed
}

// nameTable is which names count.
type nameTable struct {
	of map[flow.DPID]*api.SwitchName
	by map[string]flow.DPID
}

// mostNames bounds the names that operators have given.
const mostNames = 20_000

func newSwitchNames(bucket object.Bucket) *switchNames {
	return &switchNames{bucket: bucket, given: map[string]flow.DPID{}, described: map[flow.DPID]string{}}
}

// changed takes what the store has of a given name; nothing, if it is gone.
func (n *switchNames) changed(name string, value []byte, _ uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sw, err := flow.ParseDPID(string(value)); err == nil && len(value) > 0 {
		n.given[name] = sw
	} else {
		delete(n.given, name)
	}
	n.counted = nil
}

// heard takes an event about a switch. One that is away keeps its name.
func (n *switchNames) heard(e *api.SwitchChanged) {
	sw, err := flow.ParseDPID(e.GetSwitch().GetDpid())
	if err != nil {
		return
	}
	name := e.Switch.GetDescription()
	if h, err := flow.ParseHybrid(name); h != nil && err == nil {
		name = h.Name
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	was, had := n.described[sw]
	switch is := isName(name) && name != unnamed; {
	case is && name != was:
		n.described[sw], n.counted = name, nil
	case !is && had && e.Switch.Connected:
		delete(n.described, sw)
		n.counted = nil
	}
}

// forgotten takes the event that what is known of a switch counts no more.
func (n *switchNames) forgotten(e *api.SwitchForgotten) {
	sw, err := flow.ParseDPID(e.GetDpid())
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.described, sw)
	n.counted = nil
}

// unnamed is what Open vSwitch says of a bridge that has no description.
const unnamed = "None"

// isName reports whether a switch may have a name: one that reads as a number is a
// datapath identifier.
func isName(name string) bool {
	_, err := flow.ParseDPID(name)
	return err != nil && api.CheckName("name", name) == nil
}

// table returns which names count: those that are given, and the one by which a switch alone
// calls itself, if it has none that is given. The caller holds mu.
func (n *switchNames) table() *nameTable {
	if n.counted != nil {
		return n.counted
	}
	t := &nameTable{of: map[flow.DPID]*api.SwitchName{}, by: maps.Clone(n.given)}
	for _, name := range slices.Sorted(maps.Keys(n.given)) {
		if sw := n.given[name]; t.of[sw] == nil {
			t.of[sw] = &api.SwitchName{Dpid: sw.String(), Name: name, Given: true}
		}
	}
	count := map[string]int{}
	for _, name := range n.described {
		count[name]++
	}
	for sw, name := range n.described {
		if _, taken := n.given[name]; !taken && t.of[sw] == nil && count[name] == 1 {
			t.of[sw], t.by[name] = &api.SwitchName{Dpid: sw.String(), Name: name}, sw
		}
	}
	n.counted = t
	return t
}

// list returns the switches that have a name.
func (n *switchNames) list(context.Context, *api.ListSwitchNamesRequest) (*api.ListSwitchNamesResponse, error) {
	n.mu.Lock()
	t := n.table()
	n.mu.Unlock()
	resp := &api.ListSwitchNamesResponse{}
	for _, sw := range slices.Sorted(maps.Keys(t.of)) {
		resp.Names = append(resp.Names, t.of[sw])
	}
	return resp, nil
}

// find returns the switch of a name.
func (n *switchNames) find(name string) (flow.DPID, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.table()
	if sw, ok := t.by[name]; ok {
		return sw, nil
	}
	var found []flow.DPID
	for _, sw := range slices.Sorted(maps.Keys(n.described)) {
		if n.described[sw] == name {
			found = append(found, sw)
		}
	}
	switch len(found) {
	case 0:
		return 0, api.Errorf(codes.InvalidArgument, "switch %.80q: none has this name, and it is no datapath identifier of up to 16 hex digits; weft get switches has all", name)
	case 1:
		return 0, api.Errorf(codes.InvalidArgument, "switch %q: %v calls itself so, and has been given the name %s; say that", name, found[0], t.of[found[0]].GetName())
	}
	texts := make([]string, 0, 3)
	for _, sw := range found[:min(len(found), 3)] {
		texts = append(texts, sw.String())
	}
	return 0, api.Errorf(codes.InvalidArgument, "switch %q: %d call themselves so, %s; give them names by weft switch name", name, len(found), strings.Join(texts, ", "))
}

// name gives a switch a name.
func (n *switchNames) name(ctx context.Context, req *api.NameSwitchRequest) (*api.SwitchName, error) {
	sw, err := flow.ParseDPID(req.GetDpid())
	if err != nil {
		return nil, api.Errorf(codes.InvalidArgument, "%v", err)
	}
	name := req.GetName()
	if name != "" {
		if _, hex := flow.ParseDPID(name); hex == nil {
			return nil, api.Errorf(codes.InvalidArgument, "name %q: can be read as a datapath identifier; want a letter from g to z in it", name)
		}
		if err := api.CheckName("name", name); err != nil {
			return nil, api.Errorf(codes.InvalidArgument, "%v", err)
		}
	}
	n.mu.Lock()
	var before []string
	for is, of := range n.given {
		if of == sw && is != name {
			before = append(before, is)
		}
	}
	other, taken := n.given[name]
	full := len(n.given) >= mostNames && !taken
	for of, is := range n.described {
		if !taken && is == name && of != sw {
			other, taken = of, true
		}
	}
	n.mu.Unlock()
	switch {
	case taken && other != sw:
		return nil, api.Errorf(codes.AlreadyExists, "switch %v has the name %s; choose another, or give that one another first", other, name)
	case full && name != "":
		return nil, api.Errorf(codes.ResourceExhausted, "%d names are given, which are all that there may be", mostNames)
	}
	if name != "" && !taken {
		if _, err := n.bucket.Update(ctx, name, []byte(sw.String()), 0); err != nil {
			return nil, api.Errorf(codes.Unavailable, "keep the name %s: %v; try again", name, err)
		}
		n.changed(name, []byte(sw.String()), 0)
	}
	for _, old := range before {
		if err := n.bucket.Delete(ctx, old); err != nil {
			return nil, api.Errorf(codes.Unavailable, "switch %v keeps the name %s, too: %v; try again", sw, old, err)
		}
		n.changed(old, nil, 0)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if is := n.table().of[sw]; is != nil {
		return is, nil
	}
	return &api.SwitchName{Dpid: sw.String()}, nil
}

// resolve puts datapath identifiers in place of the names that a request has.
func (n *switchNames) resolve(m protoreflect.Message) (err error) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch at := refersTo(f); {
		case f.IsMap():
			if f.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					err = n.resolve(v.Message())
					return err == nil
				})
			}
		case f.Message() != nil && f.IsList():
			for i := 0; i < v.List().Len() && err == nil; i++ {
				err = n.resolve(v.List().Get(i).Message())
			}
		case f.Message() != nil:
			err = n.resolve(v.Message())
		case at == api.Reference_REFERENCE_UNSPECIFIED:
		case f.IsList():
			for i := 0; i < v.List().Len() && err == nil; i++ {
				var text string
				if text, err = n.reads(at, v.List().Get(i).String()); err == nil {
					v.List().Set(i, protoreflect.ValueOfString(text))
				}
			}
		default:
			var text string
			if text, err = n.reads(at, v.String()); err == nil {
				m.Set(f, protoreflect.ValueOfString(text))
			}
		}
		return err == nil
	})
	return err
}

// refersTo returns what the texts of a field name.
func refersTo(f protoreflect.FieldDescriptor) api.Reference {
	if f.Kind() != protoreflect.StringKind {
		return api.Reference_REFERENCE_UNSPECIFIED
	}
	if f.Name() == "dpid" || f.Name() == "dpids" {
		return api.Reference_REFERENCE_SWITCH
	}
	at, _ := proto.GetExtension(f.Options(), api.E_Refers).(api.Reference)
	return at
}

// reads returns a text with the datapath identifier of the switch that it names; one that has
// one, or is malformed, as it is.
func (n *switchNames) reads(at api.Reference, text string) (string, error) {
	name, rest := text, ""
	if i := strings.LastIndexByte(text, ':'); at == api.Reference_REFERENCE_AT_SWITCH {
		if i < 0 {
			return text, nil
		}
		name, rest = text[:i], text[i:]
	}
	if !isName(name) {
		return text, nil
	}
	sw, err := n.find(name)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(sw, rest), nil
}
