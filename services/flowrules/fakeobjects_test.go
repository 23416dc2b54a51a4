package flowrules

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

func (n *fakeNetwork) ReadGroups(_ context.Context, sw flow.DPID) ([]*api.Group, error) {
	s, err := n.enter(sw)
	defer s.mu.Unlock()
	var list []*api.Group
	for k, b := range s.objects {
		if k.kind == groupObject {
			list = append(list, api.NewGroup(sw, &b.group))
		}
	}
	return list, err
}

func (n *fakeNetwork) ReadMeters(_ context.Context, sw flow.DPID) ([]*api.Meter, error) {
	s, err := n.enter(sw)
	defer s.mu.Unlock()
	if err == nil && s.noMeters {
		return nil, api.Errorf(codes.Unimplemented, "OFPET_BAD_REQUEST OFPBRC_BAD_MULTIPART")
	}
	var list []*api.Meter
	for k, b := range s.objects {
		if k.kind == meterObject {
			list = append(list, api.NewMeter(sw, &b.meter))
		}
	}
	return list, err
}

// object carries out one group-mod or meter-mod; it returns the switch's error.
func (s *fakeSwitch) object(k objectKey, c flow.Command, b body) *api.ApplyFailure {
	errorType := map[objectKind]uint32{groupObject: errGroupMod, meterObject: errMeterMod}[k.kind]
	_, there := s.objects[k]
	s.history = append(s.history, fmt.Sprintf("%s %v", [...]string{"add", "modify", "", "delete"}[c], k))
	switch {
	case k.kind == meterObject && s.noMeters:
		return &api.ApplyFailure{Text: "OFPET_BAD_REQUEST OFPBRC_BAD_TYPE", Type: 1, Code: 1}
	case c == flow.Add && there:
		return &api.ApplyFailure{Text: "exists", Type: errorType, Code: map[objectKind]uint32{meterObject: 1}[k.kind]}
	case c == flow.Add && s.fullAt > 0 && len(s.objects) >= s.fullAt:
		return &api.ApplyFailure{Text: "no room", Type: errGroupMod, Code: 3}
	case c == flow.Modify && !there:
		return &api.ApplyFailure{Text: "unknown", Type: errorType, Code: map[objectKind]uint32{groupObject: 8, meterObject: 3}[k.kind]}
	case c == flow.Delete:
		s.loseObject(k)
	default:
		s.objects[k] = b
	}
	return nil
}

// loseObject removes a group or meter, and the entries that use it.
func (s *fakeSwitch) loseObject(k objectKey) {
	delete(s.objects, k)
	for key, e := range s.entries {
		used := false
		uses(&e.Entry, func(u objectKey) { used = used || u == k })
		if used {
			s.history = append(s.history, fmt.Sprintf("entry %d cut off", e.Priority))
			s.lose(key, "group_delete")
		}
	}
}
