package hydra

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bench/sim"
	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/packet"
	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/services/discovery"
	"github.com/weft-sdn/weft/services/firewall"
	"github.com/weft-sdn/weft/services/flowrules"
	"github.com/weft-sdn/weft/services/forwarding"
	"github.com/weft-sdn/weft/services/hosts"
	"github.com/weft-sdn/weft/services/paths"
	"github.com/weft-sdn/weft/services/southbound"
	"github.com/weft-sdn/weft/transport"
)

// stages is the controller of one partition in this process, without sockets:
// the services and the pipeline as they are, over switches that are but a table
// of cables. One goroutine uses it, after start.
type stages struct {
	topo   *sim.Topology
	env    *weft.Env // of the southbound
	cables map[flow.Location]flow.Location
	cancel context.CancelFunc
	ended  chan error
	dir    string
	store  *bus.Store
	probes chan probe

	pipelines map[flow.DPID]weft.Pipeline
	flows     []stagesFlow
	messages  []byte // the octets of those that decisions came to
	delivered uint64 // packets that were handed to their host

	in       flow.PacketIn // probes and announcements
	decision flow.Decision // on them
}

// probe is a frame that leaves by a port.
type probe struct {
	at   flow.Location
	data []byte
}

// stagesFlow is packets from one host to another, as their switch sends them.
type stagesFlow struct {
	sw       flow.DPID
	to       flow.Location // where the receiver is
	pipeline weft.Pipeline
	message  []byte // the packet-in
}

// startStages starts the services of a partition with a number of firewall
// rules, and waits until they know its links and hosts.
func startStages(ctx context.Context, topo *sim.Topology, rules int) (s *stages, err error) {
	s = &stages{topo: topo, cables: map[flow.Location]flow.Location{}, pipelines: map[flow.DPID]weft.Pipeline{}, probes: make(chan probe, 1<<16)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	at := func(e sim.End) flow.Location {
		return flow.Location{Switch: topo.Switches[e.Switch].DPID, Port: e.Port}
	}
	for _, l := range topo.Links {
		s.cables[at(l.A)], s.cables[at(l.B)] = at(l.B), at(l.A)
	}
	if s.dir, err = os.MkdirTemp("", "weft-stages-"); err != nil {
		return s, err
	}
	if s.store, err = bus.Open(ctx, bus.Config{Directory: s.dir}); err != nil {
		return s, err
	}
	var client *weft.Env
	ready := make(chan struct{})
	specs := []weft.Spec{s.southbound(), untimedDiscovery(), hosts.Spec(), firewall.Spec(), paths.Spec(), forwarding.Spec(), flowrules.Spec(), {
		Name: "client", Doc: "asks", Calls: weft.Methods(api.ListLinks, api.ListHosts, api.AddFirewallRules),
		Run: func(ctx context.Context, env *weft.Env) error {
			client = env
			if err := weft.Ready(ctx, env); err != nil {
				return err
			}
			close(ready)
			<-ctx.Done()
			return nil
		},
	}}
	var names []string
	for _, spec := range specs {
		names = append(names, spec.Name)
	}
	p := plan.Single(names)
	p.Partial = true
	directory, err := members.OpenDirectory(ctx, s.store)
	if err == nil {
		err = directory.Take(ctx, p, specs)
	}
	if err != nil {
		return s, err
	}
	node, err := deploy.Join(ctx, deploy.NodeConfig{
		Process: p.Workers[0].Name, Specs: specs, Store: s.store, Alone: true,
		Listen: func(transport.Handler) (map[string]string, io.Closer, error) { return nil, io.NopCloser(nil), nil },
	})
	if err != nil {
		return s, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel, s.ended = cancel, make(chan error, 1)
	go func() { s.ended <- node.Run(run) }()
	select {
	case <-ready:
	case err := <-s.ended:
		s.ended <- err
		return s, fmt.Errorf("the services do not start: %w", err)
	case <-ctx.Done():
		return s, ctx.Err()
	}
	for list := firewallRules(rules); len(list) > 0; {
		n := min(len(list), 2000)
		if _, err := weft.Call(ctx, client, api.AddFirewallRules, &api.AddFirewallRulesRequest{Rules: list[:n], NoWait: true}); err != nil {
			return s, err
		}
		list = list[n:]
	}
	return s, s.settle(ctx, client)
}

// stagesWait is how long the services may take to know the network.
const stagesWait = 5 * time.Minute

// untimedDiscovery returns discovery that does not judge links by how long their
// probes take: here that is how busy the machine is.
func untimedDiscovery() weft.Spec {
	spec, cfg := discovery.Spec(), discovery.DefaultConfig()
	cfg.Latency.Max, cfg.MaxAge, cfg.Timeout = 0, time.Minute, cfg.Forget
	spec.Config = cfg
	return spec
}

// southbound is the service in whose place the switches are.
func (s *stages) southbound() weft.Spec {
	spec := southbound.Spec()
	spec.Config, spec.Buckets, spec.Standby, spec.Live = nil, nil, false, nil
	spec.Serves = weft.Methods(api.Send, api.Apply, api.ReadFlows, api.ReadGroups, api.ReadMeters, api.EchoSwitches)
	spec.Run = func(ctx context.Context, env *weft.Env) error {
		done := func(_ context.Context, d *flow.Decision) (*api.ApplyResult, error) {
			s.carry(d)
			return &api.ApplyResult{}, nil
		}
		weft.Handle(env, api.Send, done)
		weft.Handle(env, api.Apply, done)
		weft.Handle(env, api.EchoSwitches, func(context.Context, *api.EchoSwitchesRequest) (*api.EchoSwitchesResponse, error) {
			return &api.EchoSwitchesResponse{}, nil
		})
		weft.Handle(env, api.ReadFlows, func(context.Context, *api.ReadFlowsRequest) (*api.ReadFlowsResponse, error) {
			return &api.ReadFlowsResponse{}, nil
		})
		weft.Handle(env, api.ReadGroups, func(context.Context, *api.ReadGroupsRequest) (*api.ReadGroupsResponse, error) {
			return &api.ReadGroupsResponse{}, nil
		})
		weft.Handle(env, api.ReadMeters, func(context.Context, *api.ReadMetersRequest) (*api.ReadMetersResponse, error) {
			return &api.ReadMetersResponse{}, nil
		})
		s.env = env
		if err := weft.Ready(ctx, env); err != nil {
			return err
		}
		for _, sw := range s.topo.Switches {
			ev := &api.SwitchChanged{Switch: &api.Switch{Dpid: sw.DPID.String(), Connected: true, Openflow: "1.3", Tables: 254, Ports: uint32(sw.Ports)}}
			for p := range sw.Ports {
				ev.Ports = append(ev.Ports, &api.Port{Dpid: sw.DPID.String(), Port: uint32(p + 1), Up: true})
			}
			weft.Publish(env, api.SwitchChangedEvent, ev)
		}
		<-ctx.Done()
		return nil
	}
	return spec
}

// carry takes the probes of a decision to the other ends of their cables.
func (s *stages) carry(d *flow.Decision) {
	for i := range d.Ops {
		op := &d.Ops[i]
		if op.Kind != flow.OpPacketOut {
			continue
		}
		out := &d.Outs[op.Index]
		for _, a := range out.Actions {
			to, wired := s.cables[flow.Location{Switch: op.Switch, Port: flow.Port(a.Arg)}]
			if a.Kind != flow.ActionOutput || !wired || len(out.Data) < 14 || binary.BigEndian.Uint16(out.Data[12:]) != flow.EthTypeLLDP {
				continue
			}
			select {
			case s.probes <- probe{to, append([]byte(nil), out.Data...)}:
			default: // it is sent again
			}
		}
	}
}

// settle brings probes where they lead until all links are known, and lets all
// hosts speak.
func (s *stages) settle(ctx context.Context, client *weft.Env) error {
	ctx, cancel := context.WithTimeout(ctx, stagesWait)
	defer cancel()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	links, known := 0, 0
	for {
		select {
		case p := <-s.probes:
			s.punt(&s.in, &s.decision, p.at, p.data)
			continue
		case <-ctx.Done():
			return fmt.Errorf("the services know %d of %d directions of links and %d of %d hosts: %w", links, 2*len(s.topo.Links), known, len(s.topo.Hosts), ctx.Err())
		case <-look.C:
		}
		l, err := weft.Call(ctx, client, api.ListLinks, &api.ListLinksRequest{})
		if err != nil {
			return err
		}
		links = 0
		for _, one := range l.Links {
			if one.State == "up" {
				links++
			}
		}
		if links < 2*len(s.topo.Links) {
			continue
		}
		for _, h := range s.topo.Hosts {
			ip := netip.AddrFrom4(h.IP)
			at := flow.Location{Switch: s.topo.Switches[h.At.Switch].DPID, Port: h.At.Port}
			s.punt(&s.in, &s.decision, at, packet.Pad(packet.AppendARPRequest(nil, 0, packet.ARPFields{SenderMAC: h.MAC, SenderIP: ip, TargetIP: ip})))
		}
		h, err := weft.Call(ctx, client, api.ListHosts, &api.ListHostsRequest{})
		if err != nil {
			return err
		}
		if known = len(h.Hosts); known == len(s.topo.Hosts) {
			return nil
		}
	}
}

// pipeline returns the pipeline opened for a switch.
func (s *stages) pipeline(sw flow.DPID) weft.Pipeline {
	p := s.pipelines[sw]
	if p == nil {
		p = weft.OpenPipeline(s.env, sw, func(*flow.Decision) {})
		s.pipelines[sw] = p
	}
	return p
}

// punt has the pipeline see a frame that came in at a port.
func (s *stages) punt(in *flow.PacketIn, d *flow.Decision, at flow.Location, frame []byte) {
	*in = flow.PacketIn{Switch: at.Switch, Time: time.Now().UnixNano(), BufferID: flow.BufferNone, TotalLen: uint16(len(frame)), Reason: flow.ReasonNoMatch, Key: flow.Key{InPort: at.Port}, Data: frame}
	in.Parsed = !packet.ParseEthernet(frame, &in.Key)
	d.Reset()
	s.pipeline(at.Switch).Packet(in, d)
	s.carry(d)
}

// choose chooses pairs of hosts on different switches, which send, and waits
// until the packets of all are handed to their hosts: routes follow what is told
// of links and hosts.
func (s *stages) choose(ctx context.Context, pairs int, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, uint64(len(s.topo.Hosts))))
	s.flows = nil
	for range pairs {
		src, dst := &s.topo.Hosts[rng.IntN(len(s.topo.Hosts))], &s.topo.Hosts[rng.IntN(len(s.topo.Hosts))]
		for dst.At.Switch == src.At.Switch {
			dst = &s.topo.Hosts[rng.IntN(len(s.topo.Hosts))]
		}
		frame := packet.Pad(packet.AppendUDP(nil, packet.Ether{Src: src.MAC, Dst: dst.MAC}, packet.IP{Src: netip.AddrFrom4(src.IP), Dst: netip.AddrFrom4(dst.IP)}, 9, 9, make([]byte, 18)))
		f := stagesFlow{sw: s.topo.Switches[src.At.Switch].DPID, to: flow.Location{Switch: s.topo.Switches[dst.At.Switch].DPID, Port: dst.At.Port}}
		f.pipeline = s.pipeline(f.sw)
		var err error
		f.message, err = openflow.V13.AppendPacketIn(nil, 1, &flow.PacketIn{
			BufferID: flow.BufferNone, TotalLen: uint16(len(frame)), Reason: flow.ReasonNoMatch, Key: flow.Key{InPort: src.At.Port}, Data: frame,
		})
		if err != nil {
			return err
		}
		s.flows = append(s.flows, f)
	}
	for end := time.Now().Add(stagesWait); ; {
		before := s.delivered
		if err := s.run(pairs); err != nil {
			return err
		}
		switch n := s.delivered - before; {
		case n == uint64(pairs):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(end):
			return fmt.Errorf("of the packets of %d pairs of hosts %d are handed to their host after %v", pairs, n, stagesWait)
		}
	}
}

// probe brings the probes of links that are under way where they lead.
func (s *stages) probe() {
	for {
		select {
		case p := <-s.probes:
			s.punt(&s.in, &s.decision, p.at, p.data)
		default:
			return
		}
	}
}

// run has so many packets decided upon, one flow after the other, on the calling
// goroutine: the message is decoded, the pipeline passed, and the decision
// encoded, as the southbound does but for reading and writing.
func (s *stages) run(packets int) error {
	in, d := &flow.PacketIn{}, &flow.Decision{}
	now := time.Now().UnixNano()
	for i := range packets {
		if i%saturateWindow == 0 {
			s.probe()
			now = time.Now().UnixNano() // as for every batch
		}
		f := &s.flows[i%len(s.flows)]
		if err := openflow.V13.DecodePacketIn(f.message, in); err != nil {
			return err
		}
		in.Switch, in.Time = f.sw, now
		in.Parsed = !packet.ParseEthernet(in.Data, &in.Key)
		in.Role, in.Src, in.Dst, in.DstMAC = 0, flow.Location{}, flow.Location{}, flow.MAC{}
		d.Reset()
		f.pipeline.Packet(in, d)
		var err error
		for k := range d.Ops {
			switch op := &d.Ops[k]; op.Kind {
			case flow.OpFlow:
				s.messages, err = openflow.V13.AppendFlowMod(s.messages, uint32(i), &d.Flows[op.Index])
			case flow.OpPacketOut:
				out := &d.Outs[op.Index]
				if op.Switch == f.to.Switch && len(out.Actions) == 1 && out.Actions[0] == flow.Output(f.to.Port) {
					s.delivered++
				}
				s.messages, err = openflow.V13.AppendPacketOut(s.messages, uint32(i), out)
			}
			if err != nil {
				return err
			}
		}
		if len(s.messages) >= 64<<10 {
			s.messages = s.messages[:0]
		}
	}
	return nil
}

// Close ends the services.
func (s *stages) Close() (err error) {
	if s == nil {
		return nil
	}
	if s.cancel != nil {
		s.cancel()
		err = <-s.ended
	}
	if s.store != nil {
		err = errors.Join(err, s.store.Close())
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// measure returns how many packets a second pass the stages on one processor,
// which is all that the whole process has meanwhile, and the share of them that
// was handed to the right host.
func (s *stages) measure(ctx context.Context, span time.Duration) (perSecond, toHost float64, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s.delivered = 0
	packets := 0
	began := time.Now()
	for time.Since(began) < span {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		if err := s.run(len(s.flows)); err != nil {
			return 0, 0, err
		}
		packets += len(s.flows)
	}
	return float64(packets) / time.Since(began).Seconds(), float64(s.delivered) / float64(packets), nil
}
