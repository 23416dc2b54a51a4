package ryu

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// southbound is what the handlers need of the southbound service.
type southbound interface {
	read(context.Context, *api.ReadMultipartRequest) (*api.ReadMultipartResponse, error)
	apply(context.Context, *flow.Decision) (*api.ApplyResult, error)
	modifyPort(context.Context, *api.ModifyPortRequest) (*api.ApplyResult, error)
	sendExperimenter(context.Context, *api.SendExperimenterRequest) (*api.ApplyResult, error)
}

// refused reports whether an error means that a switch refuses to answer.
func refused(err error) bool { return api.KindOf(err) == codes.FailedPrecondition }

// switches is the switches that Ryu's programs see: the service that reaches them, and
// what is known of the network.
type switches struct {
	net  southbound
	view func() view
}

// connected returns the switch of a number, decimal or hexadecimal.
func (s *switches) connected(text string) (flow.DPID, error) {
	n, err := parseInt(text)
	if err != nil {
		return 0, bad("dpid: %v", err)
	}
	if !n.IsUint64() || !s.view().has(flow.DPID(n.Uint64())) {
		return 0, &failure{404, fmt.Sprintf("there is no switch %.80q", text)}
	}
	sw := flow.DPID(n.Uint64())
	if v := s.view().version(sw); v != "1.3" {
		return 0, &failure{501, fmt.Sprintf("the switch speaks OpenFlow %s; this interface is for 1.3", v)}
	}
	return sw, nil
}

// affected reads the entries of a switch that a flow-mod concerns, by the
// switch's own matching; own narrows it to those of Weft's services.
func (s *switches) affected(ctx context.Context, sw flow.DPID, m *flow.Mod, own bool) ([]flow.Entry, error) {
	req := &api.ReadMultipartRequest{
		Dpid: sw.String(), Kind: api.Multipart_MULTIPART_FLOW, Table: uint32(m.Entry.Table), Match: m.Entry.Match.Text(),
		OutPort: uint32(flow.PortAny), OutGroup: flow.GroupAny,
	}
	cookie, mask := m.Entry.Cookie, m.CookieMask
	if m.Command == flow.Add {
		mask = 0
	}
	if m.Command == flow.Delete || m.Command == flow.DeleteStrict {
		req.OutPort, req.OutGroup = uint32(m.OutPort), m.OutGroup
	}
	if own {
		if common := mask & ownMark; cookie&common != ownCookie&common {
			return nil, nil
		}
		cookie, mask = cookie&mask&^ownMark|ownCookie, mask|ownMark
	}
	req.Cookie, req.CookieMask = uint64(cookie), uint64(mask)
	resp, err := s.net.read(ctx, req)
	if err != nil {
		if refused(err) {
			return nil, nil // the flow-mod will be refused as well
		}
		return nil, err
	}
	var list []flow.Entry
	for _, f := range resp.Flows {
		e, err := entryOf(f)
		if err != nil || f.Partial {
			continue // no command of ours can name it: stays
		}
		list = append(list, e)
	}
	return list, nil
}
