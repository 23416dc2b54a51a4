package ryu

import (
	"context"
	"fmt"
	"log/slog"
	"math"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/flow"
)

// commands is what changes something at switches, and how refusals are reported.
type commands struct {
	*switches
	reportRefusals bool // Config.ReportRefusals
	log            *slog.Logger
}

// commandRoutes are the routes of ofctl_rest that change something.
func (c *commands) commandRoutes() []route {
	command := func(method, path string, f func(context.Context, *order) error) route {
		return route{method, "/stats/" + path, c.commanding(f)}
	}
	return []route{
		command("POST", "flowentry/{cmd}", c.flowEntry),
		command("DELETE", "flowentry/clear/{dpid}", c.clearFlows),
		command("POST", "groupentry/{cmd}", c.groupEntry),
		command("POST", "meterentry/{cmd}", c.meterEntry),
		command("POST", "portdesc/{cmd}", c.portBehaviour),
		command("POST", "experimenter/{dpid}", c.experimenter),
		command("POST", "role", c.setRole),
	}
}

// order is one request that changes something at a switch.
type order struct {
	*request
	sw   flow.DPID
	body dict
}

// commanding makes a handler that changes something at the switch named in the
// body, or else in the path; its answer of success is empty.
func (c *commands) commanding(f func(context.Context, *order) error) handler {
	return func(ctx context.Context, r *request) (any, error) {
		body, err := r.dict()
		if err != nil {
			return nil, err
		}
		id := numberText(body["dpid"])
		if id == "" || id == "0" {
			id = r.args["dpid"]
		}
		if id == "" {
			return nil, bad("dpid: missing; want the number of a switch")
		}
		sw, err := c.connected(id)
		if err != nil {
			return nil, err
		}
		return nil, f(ctx, &order{r, sw, body})
	}
}

// noCommand is the answer to a path whose last part is not a command.
func noCommand(name string) error {
	return &failure{404, fmt.Sprintf("there is no command %.80q", name)}
}

func (c *commands) flowEntry(ctx context.Context, o *order) error {
	command, ok := flowCommands[o.args["cmd"]]
	if !ok {
		return noCommand(o.args["cmd"])
	}
	m, err := readMod(o.body, command)
	if err != nil {
		return err
	}
	return c.modifyFlows(ctx, o.request, o.sw, m)
}

func (c *commands) clearFlows(ctx context.Context, o *order) error {
	m := flow.Mod{Command: flow.Delete, BufferID: flow.BufferNone, OutPort: flow.PortAny, OutGroup: flow.GroupAny}
	m.Entry.Table = flow.TableAll
	return c.modifyFlows(ctx, o.request, o.sw, m)
}

// portBehaviour changes the configuration of a port.
func (c *commands) portBehaviour(ctx context.Context, o *order) error {
	if _, ok := o.body["port_no"]; !ok {
		return bad("port_no: missing; want the number of a port")
	}
	port, err := o.body.number("port_no", 0, math.MaxUint32)
	if err != nil {
		return err
	}
	req := &api.ModifyPortRequest{Dpid: o.sw.String(), Port: uint32(port)}
	for name, to := range map[string]*uint32{"config": &req.Config, "mask": &req.Mask} {
		n, err := o.body.number(name, 0, math.MaxUint32)
		if err != nil {
			return err
		}
		*to = uint32(n)
	}
	if _, ok := o.body["advertise"]; ok {
		n, err := o.body.number("advertise", 0, math.MaxUint32)
		if err != nil {
			return err
		}
		advertise := uint32(n)
		req.Advertise = &advertise
	}
	if _, ok := o.body["hw_addr"]; ok {
		text, err := o.body.text("hw_addr", "")
		if err != nil {
			return err
		}
		if _, err := flow.ParseMAC(text); err != nil {
			return bad("hw_addr: %v", err)
		}
		req.HwAddr = &text
	}
	if c.view().port(flow.Location{Switch: o.sw, Port: flow.Port(req.Port)}) == nil {
		return &failure{404, "the switch has no such port"}
	}
	if o.args["cmd"] != "modify" {
		return noCommand(o.args["cmd"])
	}
	result, err := c.net.modifyPort(ctx, req)
	if err != nil {
		return err
	}
	return c.outcome(o.request, result)
}

// experimenter sends an experimenter message.
func (c *commands) experimenter(ctx context.Context, o *order) error {
	id, err := o.body.number("experimenter", 0, math.MaxUint32)
	if err != nil {
		return err
	}
	kind, err := o.body.number("exp_type", 0, math.MaxUint32)
	if err != nil {
		return err
	}
	data, err := readData(o.body)
	if err != nil {
		return err
	}
	result, err := c.net.sendExperimenter(ctx, &api.SendExperimenterRequest{
		Dpid: o.sw.String(), Experimenter: uint32(id), ExpType: uint32(kind), Data: data,
	})
	if err != nil {
		return err
	}
	return c.outcome(o.request, result)
}

// setRole accepts the role that Weft already has. Another role would hand the
// switch to the caller, or cut it off from all services: the role is Weft's own,
// with a generation that fences off earlier runs.
func (c *commands) setRole(ctx context.Context, o *order) error {
	want, err := roles.in(o.body, "role", 1)
	if err != nil {
		return err
	}
	if want > 3 {
		return bad("role: %d: want NOCHANGE, EQUAL, MASTER or SLAVE", want)
	}
	resp, err := c.net.read(ctx, &api.ReadMultipartRequest{Dpid: o.sw.String(), Kind: api.Multipart_MULTIPART_ROLE})
	if err != nil {
		return err
	}
	if have := resp.GetRole().GetRole(); want != 0 && want != have {
		return &failure{501, "Weft is " + roles.text(have) + " of its switches and stays it; it does not become " + roles.text(want)}
	}
	return nil
}
