package lab

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"
	"github.com/weft-sdn/weft/node"
)

// asking is a controller that wants something of nodes.
type asking struct {
	mu     sync.Mutex // guards the following
	last   map[string]*api.NodeReport
	wanted map[string]*api.NodeWanted
}

func (a *asking) report(_ context.Context, q *api.ReportNodesRequest) (*api.ReportNodesResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer := &api.ReportNodesResponse{}
	for _, r := range q.Nodes {
		if !r.Unchanged {
			a.last[r.Dpid] = r
		}
		if w := a.wanted[r.Dpid]; w != nil && w.Version != r.Wanted {
			answer.Nodes = append(answer.Nodes, w)
		}
	}
	return answer, nil
}

// port returns a port as it was last reported.
func (a *asking) port(dpid string, number uint32) *api.NodePort {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.last[dpid].GetPorts() {
		if p.Port == number {
			return p
		}
	}
	return nil
}

func (a *asking) want(list ...*api.NodeWanted) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range list {
		a.wanted[w.Dpid] = w
	}
}

// TestTunnelPorts: VXLAN and GRE ports between nodes, made on demand, routed by the
// nodes, with BFD, with one Open vSwitch and with many; they are there again after
// Open vSwitch was killed, and gone when nobody wants them.
func TestTunnelPorts(t *testing.T) {
	t.Parallel()
	for _, ovs := range []string{topology.OVSShared, topology.OVSOwn} {
		t.Run(ovs, func(t *testing.T) {
			t.Parallel()
			topo := carrierLab(t, "ovs: "+ovs+"\n")
			l := upForTest(t, topo, Options{Controllers: []string{topology.ControllerNone}, Weft: testprogram.Weft(t)})
			awaitNodes(t, l, "routed", routed)
			s := l.state
			config, err := node.ReadConfig(nodes.RoutersOf(s).NodesFile())
			if err != nil {
				t.Fatal(err)
			}
			a := &asking{last: map[string]*api.NodeReport{}, wanted: map[string]*api.NodeWanted{}}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { node.Run(ctx, config, a.report, slog.New(slog.DiscardHandler)); close(done) }()
			defer func() { cancel(); <-done }()

			at := map[string]*node.Node{}
			for i := range config.Nodes {
				at[config.Nodes[i].Name] = &config.Nodes[i]
			}
			one, two := at["pe1"], at["pe2"]
			dpids := []string{one.DPID.String(), two.DPID.String()}
			await := func(what string, is func() bool) {
				t.Helper()
				for end := time.Now().Add(testwait.Limit); !is(); time.Sleep(20 * time.Millisecond) {
					if time.Now().After(end) {
						a.mu.Lock()
						t.Fatalf("not %s: %v", what, a.last)
					}
				}
			}
			up := func(port uint32) func() bool {
				return func() bool {
					return !slices.ContainsFunc(dpids, func(d string) bool {
						p := a.port(d, port)
						return p == nil || p.Bfd != "up" || !p.Carrier || p.Error != ""
					})
				}
			}
			wanted := func(version uint64, kinds ...string) {
				far := map[string]string{dpids[0]: two.Loopback.String(), dpids[1]: one.Loopback.String()}
				for d, remote := range far {
					w := &api.NodeWanted{Dpid: d, Version: version}
					for i, kind := range kinds {
						w.Tunnels = append(w.Tunnels, &api.WantedTunnel{Port: 20001 + uint32(i), Kind: kind, Remote: remote, Key: 700 + uint32(i), BfdIntervalMs: 100})
					}
					a.want(w)
				}
			}
			for i, kind := range []string{"vxlan", "gre"} {
				wanted(uint64(10+i), kind)
				await(kind+" is up", up(20001))
				for _, n := range []*node.Node{one, two} {
					o, access := nodes.SwitchesOf(s).OVSOf(n.Name), n.Access[0].Port
					for _, f := range []string{fmt.Sprintf("priority=1000,in_port=%d,actions=output:20001", access), fmt.Sprintf("priority=1000,in_port=20001,actions=output:%d", access)} {
						if _, err := o.Run(t.Context(), "ovs-ofctl", "-O", "OpenFlow13", "add-flow", "unix:"+n.Management, f); err != nil {
							t.Fatal(err)
						}
					}
				}
				await(kind+" carries frames", func() bool { // at once, it may still be the port before that is up
					r, err := l.Ping(t.Context(), "cx1", "cx2", traffic.PingOptions{Count: 5, Interval: 20 * time.Millisecond, Timeout: time.Second})
					return err == nil && r.Received > 0
				})
			}
			o := nodes.SwitchesOf(s).OVSOf("pe1")
			pidfile := filepath.Join(o.Dir, "ovs-vswitchd.pid")
			killed := killDaemon(t, pidfile)
			await("up in the Open vSwitch that was started again", func() bool { // a report may miss the moment between
				if text, err := os.ReadFile(pidfile); err != nil || strings.TrimSpace(string(text)) == strconv.Itoa(killed) {
					return false
				}
				out, err := o.Run(t.Context(), "ovs-appctl", "-t", filepath.Join(o.Dir, "ovs-vswitchd.ctl"), "bfd/show")
				return err == nil && strings.Contains(string(out), "Local Session State: up")
			})
			await("up again", up(20001))
			wanted(20)
			await("gone", func() bool { return a.port(dpids[0], 20001) == nil && a.port(dpids[1], 20001) == nil })
		})
	}
}
