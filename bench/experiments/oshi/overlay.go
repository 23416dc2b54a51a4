package oshi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/figure"
	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/lab/topology"
)

// What the link between two nodes is over.
const (
	overNone    = "none"
	overVXLAN   = "VXLAN"
	overOpenVPN = "OpenVPN"
)

func overlays() []string { return []string{overNone, overVXLAN, overOpenVPN} }

func overlay() experiments.Experiment {
	return experiments.Experiment{
		Name: "oshi-overlay", Title: "what a packet costs nodes whose link is over a tunnel: none, VXLAN, OpenVPN",
		Paper: paper, Figure: "Fig. 15",
		Claim: `Of OSHI IP, by what the links of an emulated network are over: with OpenVPN a node saturates at about 3,500 packets/s, a fourth of
what it does without a tunnel; with VXLAN at about 8 % less.`,
		Method: `Three times two hybrid nodes with a customer each and a link between them; best effort, by OSPF's routes. ` + costOfPacket + `
none: the link itself. VXLAN: in its place a port of the node's Open vSwitch, whose packets go over the link by a second bridge. OpenVPN: a TAP
device of OpenVPN over UDP (AES-256-CBC, static key), whose processor time is counted with its node's. OpenVPN is not needed for anything else of
Weft's: apt-get install --no-install-recommends openvpn.`,
		Deviation: `The paper's access links are over tunnels, too, ours are not. Its OpenVPN, of 2013, on processors without instructions for
AES perhaps, says nothing of cipher or options.`,
		Runs: 30, QuickRuns: 20, Transports: []string{"grpc"},
		Statements: []experiments.Statement{
			experiments.Value(1/(1-paperValues.Number("Fig. 15", "saturation less", "VXLAN")/100), .05).OfRatio().Said("VXLAN", "saturates at 8 % less"),
			experiments.Value(paperValues.Number("Fig. 15", "saturation lower", "OpenVPN"), .25).OfRatio().Said("OpenVPN", "saturates at a fourth"),
		},
		Columns: costColumns,
		Cases: func(p experiments.Parameters) (list []experiments.Case) {
			from := &common{Open: func(ctx context.Context) (*bed, error) { return openFirst(ctx, "overlay", overlayTopology()) }}
			for _, over := range overlays() {
				var vpns [2]int // processes of OpenVPN
				list = append(list, use(from, over, func(ctx context.Context, b *bed) error { return b.overlay(ctx, over, &vpns) },
					func(ctx context.Context, b *bed) ([][]string, error) {
						return b.cost(ctx, nodeOver(over, 1)+"c", nodeOver(over, 2)+"c", [3]meter{b.overMeter(over, 1, &vpns), nil, b.overMeter(over, 2, &vpns)}, p.Quick)
					}))
			}
			return list
		},
		Lasting: true, Sum: sumOverlay,
	}
}

// nodeOver is the name of a node: its customer's has a c at the end.
func nodeOver(over string, n int) string { return fmt.Sprint(strings.ToLower(over), n) }

func overlayTopology() *topology.Topology {
	t := &topology.Topology{OVS: topology.OVSOwn, Routing: topology.Routing{IPv4Only: true}}
	for _, over := range overlays() {
		for n := range 2 {
			name := nodeOver(over, n+1)
			t.Switches = append(t.Switches, topology.Switch{Name: name, Kind: topology.KindHybrid})
			t.Hosts = append(t.Hosts, topology.Host{Name: name + "c", Switch: name, Gateway: true})
		}
		t.Links = append(t.Links, topology.Link{A: nodeOver(over, 1), B: nodeOver(over, 2)})
	}
	return t
}

// overMeter is the time of a node: of its Open vSwitch, and of OpenVPN.
func (b *bed) overMeter(over string, n int, vpns *[2]int) meter {
	return func() (time.Duration, error) {
		used, err := b.switching(nodeOver(over, n))
		if err != nil || over != overOpenVPN {
			return used, err
		}
		more, err := cputime.Of(vpns[n-1])
		return used + more, err
	}
}

// The addresses of a link under tunnels.
const underNetwork = "172.31.0."

// overlay puts the link between two nodes over a tunnel. The tunnel's port takes the
// number of the link's, so that the node's entries are its.
func (b *bed) overlay(ctx context.Context, over string, vpns *[2]int) error {
	if over == overNone {
		return nil
	}
	key := filepath.Join(b.Dir(), "openvpn.key")
	if over == overOpenVPN {
		if _, err := exec.LookPath("openvpn"); err != nil {
			return errors.New("OpenVPN is not there: apt-get install --no-install-recommends openvpn")
		}
		if _, err := tool(ctx, "openvpn", "--genkey", "secret", key); err != nil {
			return err
		}
	}
	for n := 1; n <= 2; n++ {
		node, other := nodeOver(over, n), nodeOver(over, 3-n)
		bridge, err := b.Bridge(node)
		if err != nil {
			return err
		}
		port := b.port(node, other)
		link, err := b.vsctl(ctx, node, "--bare", "--columns=name", "find", "interface", fmt.Sprintf("ofport=%d", port))
		if err != nil {
			return err
		}
		t := tunnelled{b, node, bridge, strings.TrimSpace(link), port, fmt.Sprint(underNetwork, n), fmt.Sprint(underNetwork, 3-n)}
		if over == overVXLAN {
			err = t.vxlan(ctx)
		} else {
			vpns[n-1], err = t.openVPN(ctx, key)
		}
		if err != nil {
			return fmt.Errorf("node %s: %w", node, err)
		}
	}
	return b.routed(ctx)
}

// tunnelled is a node's end of a link that is put over a tunnel.
type tunnelled struct {
	*bed
	node, bridge string
	link         string // interface
	port         int
	here, there  string // addresses under the tunnel
}

func (t *tunnelled) vxlan(ctx context.Context) error {
	const under, tunnel = "under", "over"
	_, err := t.vsctl(ctx, t.node, "--", "del-port", t.bridge, t.link, "--", "add-br", under, "--", "set", "bridge", under, "datapath_type=netdev",
		"--", "add-port", under, t.link, "--", "add-port", t.bridge, tunnel, "--", "set", "interface", tunnel, "type=vxlan",
		"options:local_ip="+t.here, "options:remote_ip="+t.there, "options:key=1", fmt.Sprintf("ofport_request=%d", t.port))
	if err != nil {
		return err
	}
	return t.address(ctx, under)
}

// address gives an interface the end's address.
func (t *tunnelled) address(ctx context.Context, link string) error {
	ns := t.HostNetns(t.node)
	if _, err := tool(ctx, "ip", "-n", ns, "addr", "replace", t.here+"/24", "dev", link); err != nil {
		return err
	}
	_, err := tool(ctx, "ip", "-n", ns, "link", "set", link, "up")
	return err
}

// openVPN returns its process.
func (t *tunnelled) openVPN(ctx context.Context, key string) (int, error) {
	const tunnel = "over"
	if _, err := t.vsctl(ctx, t.node, "del-port", t.bridge, t.link); err != nil {
		return 0, err
	}
	if err := t.address(ctx, t.link); err != nil {
		return 0, err
	}
	var said bytes.Buffer
	cmd := exec.Command("ip", "netns", "exec", t.HostNetns(t.node), "openvpn", "--dev", tunnel, "--dev-type", "tap", "--proto", "udp",
		"--local", t.here, "--remote", t.there, "--secret", key, "--cipher", "AES-256-CBC")
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.stops = append(t.stops, func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
	})
	for {
		if _, err := tool(ctx, "ip", "-n", t.HostNetns(t.node), "link", "set", tunnel, "up"); err == nil {
			break
		}
		select {
		case err := <-ended:
			ended <- err
			return 0, fmt.Errorf("openvpn: %w: %s", err, bytes.TrimSpace(said.Bytes()))
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := threadFirst(cmd.Process.Pid); err != nil {
		return 0, fmt.Errorf("set the scheduling of openvpn: %w", err)
	}
	_, err := t.vsctl(ctx, t.node, "add-port", t.bridge, tunnel, "--", "set", "interface", tunnel, fmt.Sprintf("ofport_request=%d", t.port))
	return cmd.Process.Pid, err
}

// sumOverlay compares the tunnels with the paper and draws them.
func sumOverlay(c *experiments.Context) error {
	c.Draw(figure.Figure{Name: "Fig. 15", Title: "what a packet costs two nodes, by what their link is over", Panels: []figure.Panel{
		costPanel(c, "both nodes", "edges_us", overlays()),
	}})
	vxlan := ratioOf(c, "Fig. 15", "both nodes", "edges_us", overVXLAN, overNone)
	openvpn := ratioOf(c, "Fig. 15", "both nodes", "edges_us", overOpenVPN, overNone)
	vxlan.Says, openvpn.Says = c.Statement("VXLAN"), c.Statement("OpenVPN")
	c.Compare(vxlan, openvpn, ratioOf(c, "Fig. 15", "both nodes", "edges_us", overOpenVPN, overVXLAN))
	compareLost(c, "Fig. 15", overlays())
	c.Figure("by_way", byWay(c, overlays()))
	return nil
}
