package virtual

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/openflow"
	"github.com/weft-sdn/weft/openflow/oftest"
)

// standstillPlans run every service that has entries, in one process and in several. The
// switches have the entries of NAT, and track no connections.
var standstillPlans = map[string]string{
	"one": `workers:
  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, heartbeat, firewall, chain, qos, tenants, balancer, router, nat, scp, tunnels, l2vpn, nodes, witness]}
`,
	"split": `workers:
  edge: {services: [southbound, heartbeat]}
  topology: {services: [discovery, hosts, paths, forwarding]}
  policy: {services: [firewall, chain, qos, tenants, balancer, router, nat, scp]}
  circuits: {services: [tunnels, l2vpn, nodes]}
  rest: {services: [flowrules, stats, witness]}
`,
}

const standstillPlan = `name: %s
events: grpc
partial: true
%s`

// standstill is a network with an object of every service.
type standstill struct {
	*site
	h4   *station
	plan string

	supervised sync.WaitGroup
	leave      context.CancelFunc // ends supervise

	mu      sync.Mutex // guards changes
	watched bool
	changes []string
}

// objects makes them.
func (s *standstill) objects(ctx context.Context) error {
	env := s.by.env
	at := func(h *station) *api.TenantMember {
		return &api.TenantMember{Dpid: h.Location().Switch.String(), Port: uint32(h.Location().Port)}
	}
	for _, call := range []func() error{
		func() error { return s.rule(ctx, map[string]string{"udp_dst": "7001"}) },
		func() error {
			_, err := weft.Call(ctx, env, api.BindHost, &api.BindHostRequest{Binding: &api.HostBinding{Mac: s.h3.mac.String(), Ips: []string{"10.0.0.3"}}})
			return err
		},
		func() error {
			_, err := weft.Call(ctx, env, api.SetTenant, &api.SetTenantRequest{Tenant: &api.Tenant{Name: "t"}})
			return err
		},
		func() error {
			_, err := weft.Call(ctx, env, api.SetNetwork, &api.SetNetworkRequest{Network: &api.TenantNetwork{Tenant: "t", Name: "n", Members: []*api.TenantMember{at(s.h4)}}})
			return err
		},
		func() error {
			p := &api.QosPolicy{Name: "p", Class: &api.QosClass{Protocol: "udp", DstPort: 7002}, Limit: &api.QosLimit{RateKbps: 100, Burst: 10}}
			_, err := weft.Call(ctx, env, api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: p})
			return err
		},
		func() error {
			return s.chains(ctx, map[string]string{"eth_type": "0x0800", "ip_proto": "17", "udp_dst": "7000"})
		},
		func() error { return balance(nil, "")(ctx, s.site, families[0], 17) },
		func() error { return route(ctx, s.site, families[0], 17) },
		func() error {
			_, err := weft.Call(ctx, env, api.SetNat, &api.SetNatRequest{Gateway: &api.NatGateway{Name: "out", Dpid: "3", Port: uint32(outsidePort),
				Pool: "198.51.100.1-198.51.100.9", NextHop: nextHop.String(), Gateway: "10.0.0.98", Inside: []string{"10.0.0.0/24"}}})
			return err
		},
		func() error {
			return setCircuits(ctx, env, []*api.Circuit{{Name: "c", Ends: []string{"1:29.1", "3:29.1"}}})
		},
		func() error {
			_, err := weft.Call(ctx, env, api.AddFlows, &api.AddFlowsRequest{Flows: []*api.FlowEntry{entryOf(1, 900), entryOf(2, 901)}})
			return err
		},
	} {
		if err := call(); err != nil {
			return err
		}
	}
	return nil
}

// watch has changes of the switches noted from now on, or not.
func (s *standstill) watch(on bool) (changes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes, s.changes, s.watched = s.changes, nil, on
	return changes
}

// note takes a change of a switch.
func (s *standstill) note(sw int, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched {
		s.changes = append(s.changes, fmt.Sprintf("%.3f s, switch %d: %s", time.Since(s.began).Seconds(), sw, what))
	}
}

// start has the processes of the plan started, and started again when they end.
func (s *standstill) start() {
	var ctx context.Context
	ctx, s.leave = context.WithCancel(s.life)
	s.supervised.Go(func() { s.cluster.supervise(ctx) })
}

// end ends all processes, and nobody starts them again.
func (s *standstill) end(how func(p *process)) {
	s.leave()
	s.supervised.Wait()
	list := s.cluster.all()
	for _, p := range list {
		how(p)
	}
	for _, p := range list {
		<-p.done
	}
}

func (s *standstill) kill() { s.end(s.cluster.kill) }

// A standstillFault befalls the whole controller and leaves it started.
type standstillFault struct {
	name string
	do   func(s *standstill)
}

var standstillFaults = []standstillFault{
	{"killed", func(s *standstill) { s.kill(); s.start() }},
	{"ended", func(s *standstill) { s.end(func(p *process) { p.cancel() }); s.start() }},
	{"killed, and started half a minute later", func(s *standstill) {
		s.kill()
		time.Sleep(30 * time.Second)
		s.start()
	}},
	{"killed, and a switch connects seven seconds after the others", func(s *standstill) {
		s.kill()
		late := s.devices[1+s.chance.n(2)]
		late.unplug()
		s.start()
		time.Sleep(8 * time.Second)
		s.powerOn(s.life, late)
	}},
	{"killed, and five times more while it starts", func(s *standstill) {
		for range 6 {
			s.kill()
			s.start()
			time.Sleep(s.chance.within(3 * time.Second))
		}
	}},
	{"all killed but who holds the sessions", func(s *standstill) {
		for _, p := range s.cluster.all() {
			if p.name != "edge" {
				s.cluster.kill(p)
			}
		}
	}},
	{"killed, and started without a service, and then with it", func(s *standstill) {
		for _, without := range []string{pick(s.chance, []string{" firewall,", " qos,", " balancer,", " router,", " nat,", " chain,"}), ""} {
			s.kill()
			if err := s.cluster.apply(s.life, strings.Replace(s.plan, without, "", 1)); err != nil {
				s.t.Fatal(err)
			}
			s.start()
			time.Sleep(30 * time.Second)
		}
	}},
}

// TestStandstill: no entry, group or meter of a switch is added, changed or deleted when
// the whole controller is killed, or told to end, and started again.
func TestStandstill(t *testing.T) {
	for name, workers := range standstillPlans {
		for _, f := range standstillFaults {
			t.Run(name+", "+f.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { standsStill(t, fmt.Sprintf(standstillPlan, name, workers), f, standstillRounds) })
			})
		}
	}
}

// standsStill has a fault befall the controller some times.
func standsStill(t *testing.T, plan string, f standstillFault, rounds int) {
	w := newWorld(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	w.life = ctx
	s := &standstill{site: &site{world: w}, plan: plan}
	for i := range 3 {
		w.addSwitchAs(oftest.Config{Nicira: true, Untracked: true, Tags: 2, Ports: managedPorts, Desc: openflow.Desc{Hardware: api.OpenVSwitch}, Changed: func(what string) { s.note(i+1, what) }})
	}
	a, b, c := w.devices[0], w.devices[1], w.devices[2]
	w.addLink(a, b)
	w.addLink(b, c)
	w.addLink(c, a)
	s.h1, s.h2, s.h3, s.h4 = w.addStation(a), w.addStation(b), w.addStation(b), w.addStation(c)
	s.function = b.port()
	w.net.Host(s.function, func([]byte) [][]byte { return nil })
	b.SetLink(s.function.Port, true)
	a.SetLink(29, true)
	c.SetLink(29, true)
	w.attach(c)
	c.SetLink(outsidePort, true)
	if err := w.cluster.apply(ctx, plan); err != nil {
		t.Fatal(err)
	}
	s.start()
	defer func() {
		cancel()
		s.supervised.Wait()
		w.cluster.stop()
		w.work.Wait()
	}()
	for _, d := range w.devices {
		w.powerOn(ctx, d)
	}
	for _, h := range w.stations[1:] {
		if !s.h1.ping(ctx, h, w.number(), 20*time.Second) {
			t.Fatalf("no answer\n%s\n%s", w.story.String(), w.logs.b.String())
		}
	}
	s.by = w.cluster.present()
	if err := s.objects(ctx); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	if l, err := weft.Call(ctx, s.by.env, api.ListNats, &api.ListNatsRequest{}); err != nil || l.Gateways[0].State != "up" {
		t.Fatalf("gateways: %v, %v", l, err)
	}
	for round := range rounds {
		s.watch(true)
		f.do(s)
		time.Sleep(40 * time.Second)
		for _, change := range s.watch(false) {
			t.Errorf("round %d: %s", round+1, change)
		}
	}
}
