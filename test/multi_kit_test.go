package test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/deploy/config"
	"github.com/weft-sdn/weft/deploy/members"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/plan"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
	"github.com/weft-sdn/weft/wefttest"
)

// networks are the network services of a plan with partitions, each in a node
// of its own, by partition.
type networks struct {
	*controller
	of map[string]*network
}

// network is one of them, seen from outside.
type network struct {
	api.SouthboundClient
	api.DiscoveryClient
	api.HostsClient
	api.ForwardingClient
	api.FlowrulesClient
	api.GatewayClient
	partition string
	openflow  string // HOST:PORT
}

// partitioned runs a plan like the built-in multi: partitions by name, each
// with its switches as a plan writes them. beside are services in a worker of
// no partition.
func partitioned(t *testing.T, partitions map[string]string, beside ...weft.Spec) *networks {
	t.Helper()
	m := &networks{&controller{t: t, store: wefttest.NewStore()}, map[string]*network{}}
	text, workers := "name: multi\nevents: grpc\npartial: true\npartitions:\n", "workers:\n"
	listens := map[string]string{}
	for name, switches := range partitions {
		openflow, north := freeAddress(t), freeAddress(t)
		m.of[name] = &network{partition: name, openflow: openflow}
		listens[name] = north
		text += fmt.Sprintf("  %s: {switches: [%s]}\n", name, switches)
		workers += fmt.Sprintf("  %s:\n    partition: %[1]s\n    services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway]\n"+
			"    settings: {southbound: {listen: [\"tcp:%s\"]}, gateway: {listen: \"%s\"}}\n", name, openflow, north)
	}
	for _, s := range beside {
		workers += fmt.Sprintf("  %s: {services: [%[1]s]}\n", s.Name)
	}
	p, err := plan.Parse("multi", []byte(text+workers))
	if err != nil {
		t.Fatal(err)
	}
	specs := append(services.All(gateway.Process{}), beside...)
	if err := config.CheckPlan(p, specs); err != nil {
		t.Fatal(err)
	}
	level := slog.LevelError
	if os.Getenv("WEFT_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: level}))
	ctx, cancel := context.WithCancel(context.Background())
	directory, err := members.OpenDirectory(ctx, m.store)
	if err != nil {
		t.Fatal(err)
	}
	first, err := members.Succeed(nil, p, specs)
	if err == nil {
		err = directory.Put(ctx, first, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, len(p.Instances()))
	for _, i := range p.Instances() {
		var n *deploy.Node
		all := append(services.All(gateway.Process{Started: time.Now(), Node: func() gateway.Node { return deploy.Control{Node: n} }}), beside...)
		n = m.node(ctx, i.Name, all, nil, log)
		go func() { ended <- n.Run(ctx) }()
	}
	t.Cleanup(func() {
		cancel()
		for range p.Instances() {
			if err := <-ended; err != nil {
				t.Errorf("node: %v", err)
			}
		}
	})
	for name, n := range m.of {
		conn, err := grpc.NewClient("passthrough:///"+listens[name], grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		n.SouthboundClient, n.DiscoveryClient, n.HostsClient = api.NewSouthboundClient(conn), api.NewDiscoveryClient(conn), api.NewHostsClient(conn)
		n.ForwardingClient, n.FlowrulesClient, n.GatewayClient = api.NewForwardingClient(conn), api.NewFlowrulesClient(conn), api.NewGatewayClient(conn)
		eventually(t, "the network service of "+name+" answers", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := n.ListSwitches(ctx, &api.ListSwitchesRequest{})
			return err == nil
		})
	}
	return m
}

// island is a lab whose switches have the DPIDs from first on and connect to all
// of the given southbounds.
func island(t *testing.T, spec string, first flow.DPID, at ...*network) *lab.Lab {
	t.Helper()
	topo, err := topology.Resolve(spec)
	if err != nil {
		t.Fatal(err)
	}
	for i := range topo.Switches {
		topo.Switches[i].DPID = topology.DPID(first) + topology.DPID(i)
	}
	var controllers []string
	for _, n := range at {
		controllers = append(controllers, "tcp:"+n.openflow)
	}
	name := fmt.Sprintf("m%d%d", first, time.Now().UnixNano()%1e7)
	l, err := lab.Up(context.Background(), topo, lab.Options{Name: name, Temporary: true, Controllers: controllers, KeeperCommand: []string{os.Args[0]}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// shows returns what a network service shows of itself: its switches, links
// that are up and hosts.
func (n *network) shows(t *testing.T) (switches []string, links int, hosts []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
	defer cancel()
	s, err := n.ListSwitches(ctx, &api.ListSwitchesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range s.Switches {
		if s.Connected {
			switches = append(switches, s.Dpid)
		}
	}
	l, err := n.ListLinks(ctx, &api.ListLinksRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range l.Links {
		if l.State == "up" {
			links++
		}
	}
	h, err := n.ListHosts(ctx, &api.ListHostsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range h.Hosts {
		hosts = append(hosts, h.Mac)
	}
	return switches, links, hosts
}

// ready waits until a network service knows its lab and floods in it.
func (n *network) ready(t *testing.T, switches, links, edges int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s knows %d switches and %d links", n.partition, switches, links), func() bool {
		s, l, _ := n.shows(t)
		ctx := context.Background()
		f, err := n.GetFlooding(ctx, &api.GetFloodingRequest{})
		roles, err2 := n.ListPortRoles(ctx, &api.ListPortRolesRequest{})
		if err := errors.Join(err, err2); err != nil {
			t.Log(err)
			return false
		}
		at := 0
		for _, p := range roles.Ports {
			if p.Role == "edge" {
				at++
			}
		}
		return len(s) == switches && l == 2*links && f.Committed == f.Wanted && f.Wanted > 0 && len(f.Ports) >= 2*(switches-1) && at >= edges
	})
}
